/** The longest texts of an item. Characters of Unicode. */
export const maxAltText = 1_000
export const maxCaption = 5_000

/** The longest texts of a token. Characters, which here are UTF-16 code units. */
export const maxTokenName = 200
export const maxNote = 2_000
