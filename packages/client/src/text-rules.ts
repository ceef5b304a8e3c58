/** The longest texts of an item. Characters of Unicode. */
export const maxAltText = 1_000
export const maxCaption = 5_000
