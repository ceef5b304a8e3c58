import { createHash } from 'node:crypto'
import { Fault } from './faults.ts'
import { createParameterReader, integerFrom } from './queries.ts'

/** A size of variants. A variant is never larger than its picture. */
export interface VariantSize {
  readonly name: string
  /** Pixels. */
  readonly width: number
  readonly height: number
  /** `contain`: the whole picture fits into the size. `cover`: the picture fills the size, and what does not fit is cut off. */
  readonly fit: 'contain' | 'cover'
}

export type VariantFormat = 'webp' | 'avif'

declare const brand: unique symbol
/** Identifies a size, a format and a rendering; safe in a file name and an entity tag. */
export type VariantKey = string & { readonly [brand]: 'VariantKey' }

/** A size in one format. */
export interface Variant extends VariantSize {
  readonly format: VariantFormat
  readonly key: VariantKey
}

/** Part of the keys of variants. Increment it when the rendering changes. */
const rendering = 2

/** These sizes always exist, because clients depend on their names. */
export const builtInSizes: readonly VariantSize[] = [
  { name: 'thumb', width: 400, height: 400, fit: 'contain' },
  { name: 'medium', width: 1600, height: 1600, fit: 'contain' },
]

/** The key depends on the size, not on its name, so that a size that the operator changes gets variants of its own. */
function keyOf({ width, height, fit }: VariantSize, format: VariantFormat): VariantKey {
  const isSame = (known: VariantSize) => known.width === width && known.height === height && known.fit === fit
  // The sizes that every service has are stored under their names.
  const size = builtInSizes.find(isSame)?.name ?? `${fit}-${width}x${height}`
  return `${size}-${rendering}${format === 'webp' ? '' : `-${format}`}` as VariantKey
}

/** The key under which a failed render of an item is stored, beside its variants. A renderer has a text that names its version. */
export const failureKeyOf = (renderer: string): VariantKey =>
  `failed-${createHash('sha256').update(renderer).digest('hex').slice(0, 16)}` as VariantKey

/** Whether a text has the form of a key: of this version, an earlier one, or a size that no longer exists, or of a failed render. */
export const isVariantKey = (text: string): text is VariantKey => /^[a-z][a-z0-9-]{0,40}$/.test(text)

/** Pixels. */
interface Dimensions {
  readonly width: number
  readonly height: number
}

/** The dimensions of the variant of this size of a picture, as the picture is displayed. */
export function variantDimensions(
  { width, height, fit }: Omit<VariantSize, 'name'>,
  picture: Dimensions,
): Dimensions {
  const scales = [width / picture.width, height / picture.height]
  const scale = Math.min(1, fit === 'contain' ? Math.min(...scales) : Math.max(...scales))
  const scaled = (side: number) => Math.max(1, Math.round(side * scale))
  return { width: Math.min(width, scaled(picture.width)), height: Math.min(height, scaled(picture.height)) }
}

/** The sizes of a service, in both formats. */
export interface VariantList {
  readonly names: readonly string[]
  readonly keys: readonly VariantKey[]
  /** Undefined if there is no size with this name. */
  find(name: string, format: VariantFormat): Variant | undefined
  /** Null if no variant is requested. Throws Fault `variant-unknown` (docs/interface.md V1). */
  parse(name: unknown, format: VariantFormat): Variant | null
  /**
   * The name of the requested size, as it was sent, or of the one that a width selects; undefined if none is requested. Throws Fault `parameter-malformed`
   * (docs/interface.md V18).
   */
  nameIn(query: Readonly<Record<string, unknown>>): unknown
}

export function createVariantList(sizes: readonly VariantSize[]): VariantList {
  const variants = new Map(
    sizes.map((size) => {
      const inFormat = (format: VariantFormat): Variant => ({ ...size, format, key: keyOf(size, format) })
      return [size.name, { webp: inFormat('webp'), avif: inFormat('avif') }]
    }),
  )
  const names = [...variants.keys()]
  const accepts = `variant accepts one of: ${names.join(', ')}.`
  const find = (name: string, format: VariantFormat) => variants.get(name)?.[format]
  const byWidth = sizes
    .filter(({ fit }) => fit === 'contain')
    .toSorted((one, other) => one.width - other.width || one.height - other.height)

  return {
    names,
    keys: [...variants.values()].flatMap((formats) => Object.values(formats).map(({ key }) => key)),
    find,
    parse(name, format) {
      if (name === undefined) return null
      const variant = typeof name === 'string' ? find(name, format) : undefined
      if (variant) return variant
      throw new Fault('variant-unknown', accepts, {
        parameters: [{ parameter: 'variant', detail: accepts, accepted: names }],
      })
    },
    nameIn(query) {
      let width: number | null = null
      for (const [parameter, value] of Object.entries(query)) {
        if (!sizeParameters.has(parameter)) continue
        const isWidth = widthParameters.has(parameter) && width === null && query['variant'] === undefined
        if (!isWidth || typeof value !== 'string' || !widthShape.test(value))
          throw foreignSize(parameter, accepts)
        width = Number(value)
      }
      if (width === null) return query['variant']
      const wanted = width
      return (byWidth.find((size) => size.width >= wanted) ?? byWidth.at(-1))?.name
    },
  }
}

/** The names of the width that selects a size. */
const widthParameters: ReadonlySet<string> = new Set(['w', 'width'])

/**
 * The parameters by which other services resize pictures. Without a problem, a client that sends one would get the whole picture, and nobody would
 * notice.
 */
const sizeParameters: ReadonlySet<string> = new Set([
  ...widthParameters,
  ...['h', 'height', 'size', 'sz', 'dpr', 'fit', 'crop', 'resize', 'scale', 'rect'],
  ...['format', 'fm', 'quality', 'q', 'auto', 'thumb', 'thumbnail'],
])

/** Pixels. */
const widthShape = /^[1-9]\d{0,4}$/

function foreignSize(parameter: string, accepts: string): Fault {
  const detail = widthParameters.has(parameter)
    ? `${parameter} is a whole number of pixels from 1 to 99999. It is sent once, and without variant.`
    : `The service has pictures of listed sizes only. Select one by w, a width in pixels, or by variant: ${accepts}`
  return new Fault('parameter-malformed', detail, { parameters: [{ parameter, detail }] })
}

/** The seconds for which a request waits for a variant that is not rendered yet; null without a limit (docs/interface.md V17). */
export type VariantWait = number | null

const waitShape = /^(?:[1-5]?[0-9]|60)$/

/** Whether `parseVariantWait` accepts the value. */
export const isVariantWait = (value: unknown): boolean =>
  value === undefined || (typeof value === 'string' && waitShape.test(value))

/** Throws Fault `parameter-malformed`. */
export function parseVariantWait(value: unknown): VariantWait {
  if (value === undefined) return null
  const reader = createParameterReader({ wait: value })
  const wait = reader.read<VariantWait>('wait', null, integerFrom(0, 60, 'seconds'), (text) =>
    waitShape.test(text) ? Number(text) : null,
  )
  reader.finish()
  return wait
}

/** The stored types that the service decodes itself. SVG is not included, because rendering it would run untrusted code. */
const decoded: ReadonlySet<string> = new Set([
  'image/apng',
  'image/avif',
  'image/gif',
  'image/jpeg',
  'image/png',
  'image/tiff',
  'image/webp',
])

/** Whether the service decodes this stored type itself. */
export const isDecoded = (contentType: string): boolean => decoded.has(contentType)

/** Whether items of this stored type may have variants; some need a program that may be missing. */
export const isPictured = (contentType: string): boolean =>
  isDecoded(contentType) || toolFor(contentType) !== null

/** Whether items of this stored type have variants if these programs are installed. */
export function hasVariants(contentType: string, tools: ReadonlySet<PictureTool>): boolean {
  const tool = toolFor(contentType)
  return tool === null ? isDecoded(contentType) : tools.has(tool)
}

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

/** The programs that make pictures of types that the decoder of the service does not read, and their Debian packages. */
export const toolPackages = {
  ffmpeg: 'ffmpeg',
  pdftoppm: 'poppler-utils',
  'heif-convert': 'libheif-examples',
} as const

export type PictureTool = keyof typeof toolPackages

/**
 * The demuxers of ffmpeg for stored types. ffmpeg uses only this one, so a file that is a playlist or a script of another demuxer, which
 * could name other files or URLs, is not read as such.
 */
const demuxers: ReadonlyMap<string, string> = new Map([
  ['video/3gpp', 'mov'],
  ['video/3gpp2', 'mov'],
  ['video/mp4', 'mov'],
  ['video/quicktime', 'mov'],
  ['video/x-m4v', 'mov'],
  ['video/matroska', 'matroska'],
  ['video/webm', 'matroska'],
  ['video/x-matroska', 'matroska'],
  ['video/ogg', 'ogg'],
  ['video/MP1S', 'mpeg'],
  ['video/MP2P', 'mpeg'],
  ['video/mpeg', 'mpeg'],
  ['video/mp2t', 'mpegts'],
  ['video/vnd.avi', 'avi'],
  ['video/x-msvideo', 'avi'],
  ['video/x-flv', 'flv'],
  ['video/x-ms-asf', 'asf'],
])

/** Undefined if ffmpeg is not used for the type. */
export const demuxerFor = (contentType: string): string | undefined => demuxers.get(contentType)

const tools: ReadonlyMap<string, PictureTool> = new Map([
  ['application/pdf', 'pdftoppm'],
  ['image/heic', 'heif-convert'],
  ['image/heif', 'heif-convert'],
])

/** Null if the type needs no program, or none makes pictures of it. */
export const toolFor = (contentType: string): PictureTool | null =>
  demuxers.has(contentType) ? 'ffmpeg' : (tools.get(contentType) ?? null)
