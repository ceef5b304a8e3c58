// The sizes of variants, as settings and options of buckets write them.

/** The formats that are chosen by the request, unless the size has one of its own (docs/interface.md V4). */
export type NegotiatedFormat = 'webp' | 'avif'

const formats = ['jpeg', 'png', 'webp', 'avif', 'gif'] as const
export type VariantFormat = (typeof formats)[number]

/** A size of variants. A variant is never larger than its picture. */
export interface VariantSize {
  readonly name: string
  /** Pixels. */
  readonly width: number
  readonly height: number
  /** `contain`: the whole picture fits into the size. `cover`: the picture fills the size, and what does not fit is cut off. */
  readonly fit: 'contain' | 'cover'
  /** Left out for AVIF or WebP, by the request. */
  readonly format?: VariantFormat
  /** Of the encoder, from 1 to 100. Left out for its default. */
  readonly quality?: number
  /** Whether an animated picture keeps its movement. Then the format is WebP or GIF. */
  readonly isAnimated?: true
}

/** These sizes always exist, because clients depend on their names. */
export const builtInSizes: readonly VariantSize[] = [
  { name: 'thumb', width: 400, height: 400, fit: 'contain' },
  { name: 'medium', width: 1600, height: 1600, fit: 'contain' },
]

export const maxSizes = 20
const maxSide = 4096

const [nameShape, sideShape, headShape, qualityShape] = [
  /^[a-z0-9][a-z0-9-]{0,31}$/,
  /^[1-9]\d{0,3}$/,
  /^([a-z0-9][a-z0-9-]{0,31})(?:=([1-9]\d{0,3})(?:x([1-9]\d{0,3}))?)?$/,
  /^q([1-9]\d?|100)$/,
]

/** Whether a size can have this name. */
export const isSizeName = (name: string): boolean => nameShape.test(name)

/** What a list of sizes accepts. */
export const sizesRule = `names with a side or with width and height, such as thumb=400, card=640x360:cover, link=1200x630:cover:jpeg:q80: at most ${maxSizes} with thumb and medium, with sides from 1 to ${maxSide}. A name has 1 to 32 of a to z, 0 to 9 and, after the first one, hyphens, and occurs once. After the size may follow, in any order, contain or cover, a format (${formats.join(', ')}), a quality from q1 to q100 for jpeg, webp and avif, and animated for webp and gif`

type Parts = Omit<VariantSize, 'name' | 'width' | 'height'>

/** Reads one of them; null if it is unknown. */
function readPart(text: string): Partial<Parts> | null {
  if (text === 'contain' || text === 'cover') return { fit: text }
  if (text === 'animated') return { isAnimated: true }
  const format = formats.find((each) => each === text)
  if (format !== undefined) return { format }
  const quality = qualityShape.exec(text)?.[1]
  return quality === undefined ? null : { quality: Number(quality) }
}

/** Reads what follows a size; undefined if a part is unknown, repeated, or does not go with the others. */
function readParts(texts: readonly string[]): Parts | undefined {
  let found: Partial<Parts> = {}
  for (const text of texts) {
    const part = readPart(text)
    if (part === null || Object.keys(part).some((name) => Object.hasOwn(found, name))) return undefined
    found = { ...found, ...part }
  }
  const { fit = 'contain', format, quality, isAnimated } = found
  if (quality !== undefined && (format === 'png' || format === 'gif')) return undefined
  if (isAnimated && format !== undefined && format !== 'webp' && format !== 'gif') return undefined
  // Decoders of animated AVIF are rare, so the request does not choose.
  const fixed = isAnimated ? (format ?? 'webp') : format
  return {
    fit,
    ...(fixed === undefined ? {} : { format: fixed }),
    ...(quality === undefined ? {} : { quality }),
    ...(isAnimated ? { isAnimated } : {}),
  }
}

/** Reads a size such as `card=640x360:cover`; undefined if it is malformed. */
function parseSize(text: string): VariantSize | undefined {
  const [head = '', ...texts] = text.split(':')
  const [, name, ownWidth, ownHeight] = headShape.exec(head) ?? []
  const parts = readParts(texts)
  if (name === undefined || parts === undefined) return undefined
  // Number reads 0x10 and 1e2 too.
  const width = Number(ownWidth ?? (sideShape.test(name) ? name : Number.NaN))
  const height = Number(ownHeight ?? width)
  const isSide = (side: number) => side <= maxSide
  return isSide(width) && isSide(height) ? { name, width, height, ...parts } : undefined
}

/** A size as parseSize reads it. */
export function formatSize({ name, width, height, fit, format, quality, isAnimated }: VariantSize): string {
  const side = width === height ? `${width}` : `${width}x${height}`
  return [
    side === name ? name : `${name}=${side}`,
    ...(fit === 'cover' ? [fit] : []),
    ...(format === undefined ? [] : [format]),
    ...(quality === undefined ? [] : [`q${quality}`]),
    ...(isAnimated ? ['animated'] : []),
  ].join(':')
}

/** Reads entries of a list of sizes. Undefined if one is malformed, a name occurs twice, or there are too many with the built-in sizes. */
export function parseSizeEntries(entries: readonly string[]): readonly VariantSize[] | undefined {
  const sizes = new Map<string, VariantSize>()
  for (const entry of entries) {
    const size = parseSize(entry)
    if (size === undefined || sizes.has(size.name)) return undefined
    sizes.set(size.name, size)
  }
  const missing = builtInSizes.filter(({ name }) => !sizes.has(name))
  return sizes.size + missing.length <= maxSizes ? [...sizes.values()] : undefined
}

/** The entries of a list, which are separated by commas. */
const entriesOf = (text: string): readonly string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')

/** These sizes, and those of `others` that they do not redefine, in the order of `others`, which are the first ones. */
export function withSizes(
  others: readonly VariantSize[],
  sizes: readonly VariantSize[],
): readonly VariantSize[] {
  const all = new Map([...others, ...sizes].map((size) => [size.name, size]))
  return [...all.values()]
}

/**
 * Reads a list such as `thumb=400, card=640x360:cover, 320`. An entry is a name with a side, a name with a width and a height, or only a
 * side, which is then also the name. The built-in sizes are added if the list does not redefine them. Undefined if the text is not such a list.
 */
export function parseVariantSizes(text: string): readonly VariantSize[] | undefined {
  const sizes = parseSizeEntries(entriesOf(text))
  return sizes && withSizes(builtInSizes, sizes)
}

/** Pixels. */
interface Dimensions {
  readonly width: number
  readonly height: number
}

/** How much smaller the variant of this size of a picture is; 1 at most. */
export function variantScale(
  { width, height, fit }: Pick<VariantSize, 'width' | 'height' | 'fit'>,
  picture: Dimensions,
): number {
  const scales = [width / picture.width, height / picture.height]
  return Math.min(1, fit === 'contain' ? Math.min(...scales) : Math.max(...scales))
}

/** The dimensions of a picture that is scaled. */
export const scaledDimensions = (picture: Dimensions, scale: number): Dimensions => ({
  width: Math.max(1, Math.round(picture.width * scale)),
  height: Math.max(1, Math.round(picture.height * scale)),
})

/** The dimensions of the variant of this size of a picture, as the picture is displayed. */
export function variantDimensions(
  size: Pick<VariantSize, 'width' | 'height' | 'fit'>,
  picture: Dimensions,
): Dimensions {
  const scaled = scaledDimensions(picture, variantScale(size, picture))
  return { width: Math.min(size.width, scaled.width), height: Math.min(size.height, scaled.height) }
}
