import { planBoxedFile } from './boxed-file.ts'
import { planJpeg } from './jpeg.ts'
import { type ByteSource, type Piece, requireBounded } from './pieces.ts'
import { planPng } from './png.ts'
import { planTiff } from './tiff.ts'
import { planWebp } from './webp.ts'

type Plan = (source: ByteSource) => Promise<Piece[]>

const plans: ReadonlyMap<string, Plan> = new Map([
  ['image/jpeg', planJpeg],
  ['image/png', planPng],
  ['image/apng', planPng],
  ['image/webp', planWebp],
  ['image/tiff', planTiff],
  ...[
    ...['image/avif', 'image/heic', 'image/heif', 'image/heic-sequence', 'image/heif-sequence'],
    ...[
      'video/mp4',
      'video/quicktime',
      'video/x-m4v',
      'video/3gpp',
      'video/3gpp2',
      'audio/mp4',
      'audio/x-m4a',
    ],
  ].map((type) => [type, planBoxedFile] as const),
])

/** Whether metadata is removed from files of the type. */
export const hasRemovableMetadata = (contentType: string): boolean => plans.has(contentType)

/** The parts of the file without its metadata. Throws UnreadableFile. */
export async function planRemoval(source: ByteSource, contentType: string): Promise<Piece[]> {
  const plan = plans.get(contentType)
  if (plan === undefined) throw new TypeError(`metadata of ${contentType} is not removed`)
  const pieces = await plan(source)
  requireBounded(pieces, source.size)
  return pieces
}
