const numbers = new Intl.NumberFormat('en')

export const formatCount = (count: number): string => numbers.format(count)
