/** The language in which numbers and dates are written. */
export const locale = { current: 'en' }

export const formatCount = (count: number): string => count.toLocaleString(locale.current)
