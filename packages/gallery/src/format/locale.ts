/** The language in which numbers and dates are written. */
export const locale = { current: 'en' }
