/** Seconds for which a replaced token remains valid: by default, and at most (docs/interface.md T8). */
export const defaultOverlap = 86_400
export const maxOverlap = 2_592_000
