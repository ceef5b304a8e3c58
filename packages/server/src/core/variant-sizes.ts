import { builtInSizes, type VariantSize } from './variant.ts'

const [maxSizes, maxSide] = [20, 4096]

const entry = /^([a-z0-9][a-z0-9-]{0,31})(?:=(\d{1,4})(?:x(\d{1,4}))?)?(?::(contain|cover))?$/

/**
 * Reads a list such as `thumb=400, card=640x360:cover, 320`. An entry is a name with a side, a name with a width and a height, or only a
 * side, which is then also the name.
 * The built-in sizes are added if the list does not redefine them. Undefined if the text is not such a list.
 */
export function parseVariantSizes(text: string): readonly VariantSize[] | undefined {
  const sizes = new Map(builtInSizes.map((size) => [size.name, size]))
  const listed = new Set<string>()
  for (const part of text.split(',').map((part) => part.trim())) {
    if (part === '') continue
    const [, name = '', ownWidth, ownHeight, fit] = entry.exec(part) ?? []
    const width = Number(ownWidth ?? name)
    const height = Number(ownHeight ?? width)
    const isSide = (side: number) => side >= 1 && side <= maxSide
    // NaN for a name without a size.
    if (!isSide(width) || !isSide(height) || listed.has(name)) return undefined
    listed.add(name)
    sizes.set(name, { name, width, height, fit: fit === 'cover' ? 'cover' : 'contain' })
  }
  return sizes.size <= maxSizes ? [...sizes.values()] : undefined
}
