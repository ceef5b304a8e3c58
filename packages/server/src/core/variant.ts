import { Fault } from './fault.ts'

/** The variants of a picture. Each fits into a square with this side in pixels, and is never larger than the picture. */
export const variantSides = { thumb: 400, medium: 1600 } as const

export type Variant = keyof typeof variantSides

export const variants: readonly Variant[] = ['thumb', 'medium']

/** Part of the file names and entity tags of variants. Increment it when the rendering changes. */
const format = 1

/** The key of a variant in its current format; safe in a file name and an entity tag. */
export const variantKey = (variant: Variant): string => `${variant}-${format}`

const accepts = `variant accepts one of: ${variants.join(', ')}.`

/** The requested variant, null if absent; throws Fault `variant-unknown` (docs/interface.md V1). */
export function parseVariant(value: unknown): Variant | null {
  if (value === undefined) return null
  const variant = variants.find((name) => name === value)
  if (variant) return variant
  throw new Fault('variant-unknown', accepts, { parameters: [{ parameter: 'variant', detail: accepts }] })
}

/** The stored types that have variants. SVG is not included, because rendering it would run untrusted code. */
const pictured: ReadonlySet<string> = new Set([
  'image/apng',
  'image/avif',
  'image/gif',
  'image/jpeg',
  'image/png',
  'image/tiff',
  'image/webp',
])

/** Whether items of this stored type have variants. */
export const isPictured = (contentType: string): boolean => pictured.has(contentType)
