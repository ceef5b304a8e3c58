/** Labels of one item, at most (docs/interface.md M7). */
export const maxLabels = 16
/** Characters of Unicode. */
export const maxLabelValue = 200
/** The labels that a list selects at most (docs/interface.md K14). */
export const maxSelectedLabels = 8

const keyShape = /^[a-z0-9_.-]{1,40}$/

export const isLabelKey = (key: string): boolean => keyShape.test(key)

/** Control characters, and surrogates without a partner. */
const unfit = /[\p{Cc}\p{Cs}]/u

/** A text of up to 200 characters without control characters. */
export const isLabelValue = (value: unknown): value is string =>
  typeof value === 'string' && !unfit.test(value) && [...value].length <= maxLabelValue
