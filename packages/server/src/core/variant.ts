import { Fault } from './fault.ts'

/** What is made of pictures: each fits into a square of this many pixels, and is never larger than the picture. */
export const variantSides = { thumb: 400, medium: 1600 } as const

export type Variant = keyof typeof variantSides

export const variants: readonly Variant[] = ['thumb', 'medium']

/** Part of the names under which variants are kept and of their entity tags: raise it when they are made otherwise. */
const format = 1

/** Names a variant as it is made now; safe in a file name and an entity tag. */
export const variantKey = (variant: Variant): string => `${variant}-${format}`

const accepts = `variant accepts one of: ${variants.join(', ')}.`

/** The variant asked for, null when absent; throws Fault `variant-unknown` (docs/interface.md V1). */
export function parseVariant(value: unknown): Variant | null {
  if (value === undefined) return null
  const variant = variants.find((name) => name === value)
  if (variant) return variant
  throw new Fault('variant-unknown', accepts, { parameters: [{ parameter: 'variant', detail: accepts }] })
}

/** The stored types of which variants are made. SVG is none of them: rendering it is running what strangers wrote. */
const pictured: ReadonlySet<string> = new Set([
  'image/apng',
  'image/avif',
  'image/gif',
  'image/jpeg',
  'image/png',
  'image/tiff',
  'image/webp',
])

export const isPictured = (contentType: string): boolean => pictured.has(contentType)
