import { readFile } from 'node:fs/promises'
import { createByteSource, withFile } from './metadata/byte-source.ts'
import { type ByteSource, UnreadableFile } from './metadata/pieces.ts'
import {
  readDirectory,
  readFormat,
  readNumbers,
  sizesOf,
  type TiffDirectory,
} from './metadata/tiff-directory.ts'
import type { PictureSize, PictureSource } from './picture-task.ts'

// The decoder visits all directories of a TIFF file each time it opens it, about 40,000 in a second. Only the first one is shown.

/** Directories that the decoder may visit. */
const maxVisited = 1_000

/** Tags of the width, the height and the orientation. */
const [widthTag, heightTag, orientationTag] = [256, 257, 274]

/** The size of the first picture of a TIFF file, as it is displayed; null for other files. Throws UnreadableFile. */
export const measureTiff = (picture: PictureSource): Promise<PictureSize | null> =>
  reading(picture, async (source) => {
    const format = await readFormat(source)
    const { entries } = await readDirectory(source, format, format.first)
    const numberOf = async (tag: number) => {
      const entry = entries.find((each) => each.tag === tag)
      return entry && (await readNumbers(source, format, entry, 1))[0]
    }
    const [width, height] = [await numberOf(widthTag), await numberOf(heightTag)]
    if (!width || !height) throw new UnreadableFile('a picture without a size')
    const orientation = (await numberOf(orientationTag)) ?? 1
    // The others exchange rows and columns.
    const isUpright = orientation < 5 || orientation > 8
    return isUpright ? { width, height } : { width: height, height: width }
  })

/** The same picture, or the bytes of its file without the other directories if they are so many that the decoder must not visit them. */
export async function withoutManyDirectories(picture: PictureSource): Promise<PictureSource> {
  const end = await reading(picture, findManyDirectories).catch(nullIfUnreadable)
  if (end === null) return picture
  const bytes = typeof picture === 'string' ? await readFile(picture) : Buffer.from(picture)
  return bytes.fill(0, end.position, end.position + end.size)
}

/** Where the first directory refers to the next one; null if few follow. */
async function findManyDirectories(source: ByteSource) {
  const format = await readFormat(source)
  const { entry, count, pointer } = sizesOf(format)
  const first = await readDirectory(source, format, format.first)
  let directory: TiffDirectory = first
  for (let visited = 1; visited < maxVisited; visited += 1) {
    if (directory.next === 0) return null
    directory = await readDirectory(source, format, directory.next)
  }
  return { position: format.first + count + first.entries.length * entry, size: pointer }
}

/** The decoder stops at such a directory too. */
function nullIfUnreadable(error: unknown): null {
  if (error instanceof UnreadableFile || error instanceof RangeError) return null
  throw error
}

async function reading<T>(
  picture: PictureSource,
  work: (source: ByteSource) => Promise<T>,
): Promise<T | null> {
  const workIfTiff = async (source: ByteSource) => {
    if (source.size < 8) return null
    const start = (await source.read(0, 4)).toString('latin1')
    return /^(II[*+]\0|MM\0[*+])/.test(start) ? work(source) : null
  }
  if (typeof picture === 'string') return withFile(picture, workIfTiff)
  const part = async (position: number, length: number) => picture.subarray(position, position + length)
  return workIfTiff(createByteSource(picture.byteLength, part, picture.byteLength))
}
