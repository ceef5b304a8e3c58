import { isBoxedFile, isEssentialBox, planBoxedFile } from './boxed-file.ts'
import { boxAt } from './boxes.ts'
import { planJpeg } from './jpeg.ts'
import { type ByteSource, type Piece, requireBounded, UnreadableFile } from './pieces.ts'
import { planPng } from './png.ts'
import { planTiff } from './tiff.ts'
import { planWebp } from './webp.ts'

/** The formats whose metadata is removed. `boxes`: MP4, QuickTime, HEIC, AVIF and those of their kind. */
export type RemovableFormat = 'jpeg' | 'png' | 'webp' | 'tiff' | 'boxes'

/** What a file has without its metadata. */
export interface RemovalPlan {
  /** Null if no decoder of these formats reads the file. Then it stays as it is. */
  readonly format: RemovableFormat | null
  readonly pieces: readonly Piece[]
}

const planners: Readonly<Record<RemovableFormat, (source: ByteSource) => Promise<Piece[]>>> = {
  jpeg: planJpeg,
  png: planPng,
  webp: planWebp,
  tiff: planTiff,
  boxes: planBoxedFile,
}

/** Files of these stored types have the format, or are refused. */
const formats: ReadonlyMap<string, RemovableFormat> = new Map([
  ['image/jpeg', 'jpeg'],
  ['image/png', 'png'],
  ['image/apng', 'png'],
  ['image/webp', 'webp'],
  ['image/tiff', 'tiff'],
  ...[
    ...['image/avif', 'image/heic', 'image/heif', 'image/heic-sequence', 'image/heif-sequence'],
    ...['video/mp4', 'video/quicktime', 'video/x-m4v', 'video/3gpp', 'video/3gpp2'],
    ...['audio/mp4', 'audio/x-m4a'],
  ].map((type) => [type, 'boxes'] as const),
])

const signatures: readonly (readonly [format: RemovableFormat, at: number, signature: string])[] = [
  // Decoders skip what follows up to the next marker. JPEG-LS begins with it too.
  ['jpeg', 0, '\xff\xd8'],
  ['png', 0, '\x89PNG\r\n\x1a\n'],
  ['webp', 8, 'WEBP'],
  ...['II*\0', 'MM\0*', 'II+\0', 'MM\0+'].map((signature) => ['tiff', 0, signature] as const),
]

function formatBySignature(head: Uint8Array): RemovableFormat | null {
  const text = Buffer.from(head.subarray(0, 16)).toString('latin1')
  return signatures.find(([, at, signature]) => text.startsWith(signature, at))?.[0] ?? null
}

/** A tag in front of a file, which players skip. */
const isTagged = (head: Uint8Array): boolean => Buffer.from(head.subarray(0, 3)).equals(Buffer.from('ID3'))

/** Whether a file with this head has the structure of TIFF, as RAW files have. */
export const hasTiffStructure = (head: Uint8Array): boolean => formatBySignature(head) === 'tiff'

/** Whether files of this stored type have one of the formats. */
export const isRemovableType = (contentType: string): boolean => formats.has(contentType)

/**
 * False if no decoder of the formats reads a file of `size` bytes with this head, whatever its stored type is. True does not mean that one
 * does. `isText` is called for a head that may be a text.
 */
export function mayHaveRemovableMetadata(
  head: Uint8Array,
  size: number,
  contentType: string,
  isText: (head: Uint8Array) => boolean,
): boolean {
  if (isRemovableType(contentType)) return true
  // Text can have the letters of a signature. Boxes, tags and chunks of a file have bytes of their lengths that no text has.
  if (isText(head)) return formatBySignature(head) === 'jpeg'
  if (isTagged(head) || formatBySignature(head) !== null) return true
  const start = Buffer.from(head.subarray(0, 16))
  const box = boxAt(start, 0, size)
  return (box !== null && box.end < size) || isEssentialBox(start.toString('latin1', 4, 8))
}

/** The format by the bytes, whatever the stored type is. Throws UnreadableFile if the file cannot be parsed as such. */
async function formatOf(source: ByteSource, contentType: string): Promise<RemovableFormat | null> {
  const head = await source.read(0, Math.min(16, source.size))
  const stated = formats.get(contentType) ?? null
  if (isTagged(head) && head.byteLength >= 10) {
    const length = [6, 7, 8, 9].reduce((sum, at) => sum * 128 + ((head[at] ?? 0) & 127), 0)
    const end = 10 + length + (((head[5] ?? 0) & 16) === 0 ? 0 : 10)
    if (end < source.size && (await formatAt(source, end)) !== null)
      throw new UnreadableFile('a tag is in front of the file')
    return stated
  }
  return (await formatAt(source, 0)) ?? stated
}

async function formatAt(source: ByteSource, position: number): Promise<RemovableFormat | null> {
  const head = await source.read(position, Math.min(16, source.size - position))
  return formatBySignature(head) ?? ((await isBoxedFile(source, position)) ? 'boxes' : null)
}

/** The parts of the file without its metadata. Throws UnreadableFile. */
export async function planRemoval(source: ByteSource, contentType: string): Promise<RemovalPlan> {
  const format = await formatOf(source, contentType)
  const pieces = format === null ? [{ from: 0, to: source.size }] : await planners[format](source)
  requireBounded(pieces, source.size)
  return { format, pieces }
}
