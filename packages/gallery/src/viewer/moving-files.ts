import type { Media } from '@mediabucket/client'
import type { FileAccess } from '../service/file-access.ts'
import type { Addressed } from '../service/urls.ts'

/** Where the formats say that a picture moves. Bytes. */
const headLength = 131_072

/** Whether a picture moves, from the start of its file; true if that does not tell. Rejects if the file cannot be loaded. */
export async function readMotion(
  files: Pick<FileAccess, 'bytes'>,
  media: Addressed & Pick<Media, 'content_type' | 'size'>,
  signal: AbortSignal,
): Promise<boolean> {
  const { content_type, size } = media
  if (size === 0) return false
  const response = await files.bytes(media, { firstBytes: headLength, signal })
  return moves(content_type, new Uint8Array(await response.arrayBuffer()), size <= headLength)
}

const textAt = (bytes: Uint8Array, start: number, length: number): string =>
  String.fromCharCode(...bytes.subarray(start, start + length))

const numberAt = (bytes: Uint8Array, start: number): number =>
  [0, 1, 2, 3].reduce((sum, at) => sum * 256 + (bytes[start + at] ?? 0), 0)

/** The flag `Animation` of the header of extended files. */
const webpMoves = (head: Uint8Array): boolean =>
  textAt(head, 12, 4) === 'VP8X' && ((head[20] ?? 0) & 0b10) !== 0

/** The chunk `acTL` stands before the pixels. */
function pngMoves(head: Uint8Array): boolean | null {
  for (let at = 8; at + 8 <= head.length; at += 12 + numberAt(head, at)) {
    const kind = textAt(head, at + 4, 4)
    if (kind === 'acTL') return true
    if (kind === 'IDAT') return false
  }
  return null
}

/** The brand of image sequences, in the first box. */
function avifMoves(head: Uint8Array): boolean {
  const brands = textAt(head, 8, Math.min(numberAt(head, 0), 512) - 8)
  return brands.match(/.{4}/gs)?.includes('avis') ?? false
}

/** A second image. */
function gifMoves(head: Uint8Array): boolean | null {
  const colours = (packed = 0) => (packed & 0x80 ? 3 << ((packed & 7) + 1) : 0)
  let [at, images] = [13 + colours(head[10]), 0]
  while (at < head.length) {
    const kind = head[at]
    if (kind === 0x3b) return false
    if (kind === 0x2c) {
      images += 1
      if (images > 1) return true
      at += 11 + colours(head[at + 9])
    } else if (kind === 0x21) at += 2
    // What browsers do not draw either.
    else return false
    for (let size = head[at]; size; size = head[at]) at += size + 1
    at += 1
  }
  return null
}

/** SMIL, or CSS. */
const svgMoves = (head: Uint8Array): boolean | null =>
  /<(?:[\w-]+:)?(?:animate|set\b)|animation|transition|@keyframes|@import|<\?xml-stylesheet/i.test(
    new TextDecoder().decode(head),
  ) || null

/** Each returns null if the head ends too early. */
const detectors: Readonly<Record<string, (head: Uint8Array) => boolean | null>> = {
  'image/gif': gifMoves,
  'image/webp': webpMoves,
  'image/png': pngMoves,
  'image/apng': pngMoves,
  'image/avif': avifMoves,
  'image/svg+xml': svgMoves,
}

/** Whether a picture of a type that may move does so; true if its head does not tell. */
export function moves(contentType: string, head: Uint8Array, isWhole: boolean): boolean {
  const found = detectors[contentType]?.(head)
  return found ?? !isWhole
}
