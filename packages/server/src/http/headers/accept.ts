import type { VariantFormat } from '../../core/variant.ts'

/** The media ranges of an Accept header, in lower case, with their weights. */
function rangesOf(accept: string | undefined): (readonly [name: string, weight: number])[] {
  return (accept ?? '').split(',').map((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const [weight = 1] = parameters.flatMap((text) => /^q\s*=\s*(\d(?:\.\d*)?)$/.exec(text)?.[1] ?? [])
    return [name, Number(weight)]
  })
}

/**
 * The weight (RFC 9110, section 12.4.2) that an Accept header gives to a media type; 0 if it does not name it. Ranges such as `text/*` do
 * not name it.
 */
export function weightOf(accept: string | undefined, type: string): number {
  return Math.max(0, ...rangesOf(accept).flatMap(([name, weight]) => (name === type ? [weight] : [])))
}

/** Whether an Accept header names the media type, with a weight above 0. */
export const namesType = (accept: string | undefined, type: string): boolean => weightOf(accept, type) > 0

/** Longer Accept headers are read for each request. */
const [maxKnown, maxKnownLength] = [100, 300]

/**
 * Returns a function that chooses the format of a variant by an Accept header: AVIF if the header names it with a weight that is not
 * below that of WebP, otherwise WebP. Clients send few different headers, so it remembers them.
 */
export function createFormatChoice(): (accept: string | undefined) => VariantFormat {
  const known = new Map<string, VariantFormat>()
  let last: string | undefined
  let lastFormat: VariantFormat = 'webp'

  function formatOf(accept: string): VariantFormat {
    const found = known.get(accept)
    if (found) return found
    const weight = weightOf(accept, 'image/avif')
    const names = rangesOf(accept).map(([name]) => name)
    // The most specific range applies (RFC 9110, section 12.5.1).
    const webp = ['image/webp', 'image/*', '*/*'].find((type) => names.includes(type))
    const webpWeight = webp === undefined ? 0 : weightOf(accept, webp)
    const format = weight > 0 && weight >= webpWeight ? 'avif' : 'webp'
    if (known.size < maxKnown && accept.length <= maxKnownLength) known.set(accept, format)
    return format
  }

  return (accept) => {
    if (accept === last) return lastFormat
    lastFormat = accept === undefined ? 'webp' : formatOf(accept)
    last = accept
    return lastFormat
  }
}
