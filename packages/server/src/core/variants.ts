import { createHash } from 'node:crypto'
import { Fault } from './faults.ts'
import { createParameterReader, integerFrom } from './queries.ts'
import { builtInSizes, type NegotiatedFormat, type VariantFormat, type VariantSize } from './variant-sizes.ts'

declare const brand: unique symbol
/** Identifies a size, a format, a crop and a rendering; safe in a file name and an entity tag. */
export type VariantKey = string & { readonly [brand]: 'VariantKey' }

/** What `cover` sizes keep of a picture without a focus: its middle, or the part that attracts the eye. */
export type Crop = 'center' | 'attention'
export const isCrop = (text: string): text is Crop => text === 'center' || text === 'attention'

/** A size in one format, of the pictures with one focus. */
export interface Variant extends VariantSize {
  readonly format: VariantFormat
  readonly key: VariantKey
  /** Of a `cover` size: as the items store it (focus.ts), or where it is without one. */
  readonly crop: Crop | number
  /** Whether the request chooses the format. */
  readonly isNegotiated: boolean
}

/** Part of the keys of variants. Increment it when the rendering changes. */
const rendering = 3

/** The key depends on the size, not on its name, so that a size that the operator changes gets variants of its own. */
function keyOf(size: VariantSize, format: VariantFormat, crop: Crop | number): VariantKey {
  const { width, height, fit, quality, isAnimated } = size
  const isSame = (known: VariantSize) => known.width === width && known.height === height && known.fit === fit
  return [
    // The sizes that every service has are stored under their names.
    builtInSizes.find(isSame)?.name ?? `${fit}-${width}x${height}`,
    `${rendering}`,
    ...(format === 'webp' ? [] : [format]),
    ...(quality === undefined ? [] : [`q${quality}`]),
    ...(isAnimated ? ['animated'] : []),
    ...(fit === 'contain' || crop === 'center' ? [] : [typeof crop === 'number' ? `f${crop}` : crop]),
  ].join('-') as VariantKey
}

/** The key under which a failed render of an item is stored, beside its variants. A renderer has a text that names its version. */
export const failureKeyOf = (renderer: string): VariantKey =>
  `failed-${createHash('sha256').update(renderer).digest('hex').slice(0, 16)}` as VariantKey

export const isFailureKey = (key: VariantKey): boolean => key.startsWith('failed-')

/** Whether a text has the form of a key: of this version, an earlier one, or a size that no longer exists, or of a failed render. */
export const isVariantKey = (text: string): text is VariantKey => /^[a-z][a-z0-9-]{0,60}$/.test(text)

/** What a request for bytes selects: a width, or the name of a size as it was sent, which is undefined for the bytes of the item. */
export type VariantSelection = { readonly width: number } | { readonly name: unknown }

/** What variants a bucket has. */
export interface VariantList {
  readonly sizes: readonly VariantSize[]
  readonly names: readonly string[]
  /** Undefined if there is no size with this name. `focus` is that of the item, as it is stored. */
  find(name: string, format: NegotiatedFormat, focus?: number | null): Variant | undefined
  /** Null if no variant is requested. Throws Fault `variant-unknown` (docs/interface.md V1). */
  parse(selection: VariantSelection, format: NegotiatedFormat, focus?: number | null): Variant | null
  /** The name of the selected size, as it was sent, or of the one that a width selects; undefined if none is selected (docs/interface.md V18). */
  nameOf(selection: VariantSelection): unknown
  /** Whether everybody may read the selected variant, although the bucket is private. */
  isPublic(selection: VariantSelection): boolean
  /** The keys of all variants of items without a focus. */
  readonly keys: readonly VariantKey[]
  /** The keys of all variants of an item with this focus. */
  keysWith(focus: number | null): readonly VariantKey[]
}

interface ListOptions {
  readonly crop?: Crop
  readonly publicNames?: ReadonlySet<string>
}

const noNames: ReadonlySet<string> = new Set()

/** Describes the formats of a size. A focus has an effect on `cover` sizes only. */
class SizeFormats {
  readonly #size: VariantSize
  readonly #withoutFocus: Readonly<Record<NegotiatedFormat, Variant>>

  constructor(size: VariantSize, crop: Crop) {
    this.#size = size
    this.#withoutFocus = { webp: this.#describe('webp', crop), avif: this.#describe('avif', crop) }
  }

  of(format: NegotiatedFormat, focus: number | null): Variant {
    return focus === null || this.#size.fit === 'contain'
      ? this.#withoutFocus[format]
      : this.#describe(format, focus)
  }

  #describe(negotiated: NegotiatedFormat, crop: Crop | number): Variant {
    const { format = negotiated } = this.#size
    const isNegotiated = this.#size.format === undefined
    return { ...this.#size, format, crop, isNegotiated, key: keyOf(this.#size, format, crop) }
  }
}

export function createVariantList(
  sizes: readonly VariantSize[],
  { crop = 'center', publicNames = noNames }: ListOptions = {},
): VariantList {
  const byName = new Map(sizes.map((size) => [size.name, new SizeFormats(size, crop)]))
  const names = [...byName.keys()]
  const accepts = `variant accepts one of: ${names.join(', ')}.`
  const find = (name: string, format: NegotiatedFormat, focus: number | null = null) =>
    byName.get(name)?.of(format, focus)
  const byWidth = sizes
    .filter(({ fit, format }) => fit === 'contain' && format === undefined)
    .toSorted((one, other) => one.width - other.width || one.height - other.height)

  const keysWith = (focus: number | null) => [
    ...new Set(
      [...byName.values()].flatMap((size) => [size.of('webp', focus).key, size.of('avif', focus).key]),
    ),
  ]

  function nameOf(selection: VariantSelection): unknown {
    if ('name' in selection) return selection.name
    return (byWidth.find((size) => size.width >= selection.width) ?? byWidth.at(-1))?.name
  }

  return {
    sizes,
    names,
    find,
    nameOf,
    parse(selection, format, focus) {
      const name = nameOf(selection)
      if (name === undefined && 'name' in selection) return null
      const variant = typeof name === 'string' ? find(name, format, focus) : undefined
      if (variant) return variant
      throw new Fault('variant-unknown', accepts, {
        parameters: [{ parameter: 'variant', detail: accepts, accepted: names }],
      })
    },
    isPublic(selection) {
      const name = publicNames.size === 0 ? undefined : nameOf(selection)
      return typeof name === 'string' && publicNames.has(name) && byName.has(name)
    },
    keys: keysWith(null),
    keysWith,
  }
}

/** Reads what a request selects (docs/interface.md V18). Throws Fault `parameter-malformed`. */
export function readSelection(query: Readonly<Record<string, unknown>>): VariantSelection {
  let width: number | null = null
  for (const [parameter, value] of Object.entries(query)) {
    if (!sizeParameters.has(parameter)) continue
    const isWidth = widthParameters.has(parameter) && width === null && query['variant'] === undefined
    if (!isWidth || typeof value !== 'string' || !widthShape.test(value)) throw foreignSize(parameter)
    width = Number(value)
  }
  return width === null ? { name: query['variant'] } : { width }
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

function foreignSize(parameter: string): Fault {
  const detail = widthParameters.has(parameter)
    ? `${parameter} is a whole number of pixels from 1 to 99999. It is sent once, and without variant.`
    : 'The service has pictures of listed sizes only. Select one by w, a width in pixels, or by variant, the name of a size.'
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
