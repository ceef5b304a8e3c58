import { locale } from './locale.ts'

export const formatCount = (count: number): string => count.toLocaleString(locale.current)
