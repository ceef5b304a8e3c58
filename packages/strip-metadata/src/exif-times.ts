import { type ByteSource, partOf, UnreadableFile } from './pieces.ts'
import {
  placeOf,
  readEntries,
  readFormat,
  readNumbers,
  type TiffEntry,
  type TiffFormat,
} from './tiff-directory.ts'
import { searchXmp, type TimeSearch } from './time-search.ts'
import { cleanText, parseOffset, parseTimeText } from './time-text.ts'

// Exif 3.0, 4.6.6: a time, its fraction and its offset from UTC are three texts.

const tags = {
  original: { time: 0x9003, fraction: 0x9291, offset: 0x9011 },
  digitized: { time: 0x9004, fraction: 0x9292, offset: 0x9012 },
  // The last change of the file, which is not when the picture was taken.
  changed: { time: 0x0132, fraction: 0x9290, offset: 0x9010 },
} as const
const sources = { original: 'exif-original', digitized: 'exif-digitized' } as const

const exifDirectory = 0x8769
const xmpTag = 700

/** Entries of a directory. */
const maxEntries = 4_096
/** Bytes of a text. */
const maxText = 64

/** What precedes the TIFF structure in JPEG files, and in some files of other formats. */
const prefix = /^Exif\0/i
const prefixLength = 6

/** Whether data that begins so may be Exif with its prefix. */
export const hasExifPrefix = (start: string): boolean => prefix.test(start)

/** Reads a TIFF structure, which may have the prefix: the Exif directory, and times and XMP in the first directory. Throws UnreadableFile. */
export async function searchExif(prefixed: ByteSource, search: TimeSearch): Promise<void> {
  const start = await prefixed.read(0, Math.min(prefixLength, prefixed.size))
  const block = hasExifPrefix(start.toString('latin1'))
    ? partOf(prefixed, { start: start.byteLength, end: prefixed.size })
    : prefixed
  if (await isEmpty(block)) return
  const format = await readFormat(block)
  const first = await readEntries(block, format, format.first, maxEntries)
  const entries = [...first.entries]
  const pointer = first.entries.find(({ tag }) => tag === exifDirectory)
  if (pointer)
    await search.attempt(async () => {
      const [position = 0] = await readNumbers(block, format, pointer, 1)
      if (position === 0) return
      const exif = await readEntries(block, format, position, maxEntries)
      // Their usual place comes before the first directory.
      entries.unshift(...exif.entries)
      requireWhole(exif.isWhole)
    })
  await searchTexts(new ExifTexts(block, format, entries), search)
  const packet = first.entries.find(({ tag }) => tag === xmpTag)
  if (packet)
    await search.attempt(async () => {
      await searchXmp(block, placeOf(block, format, packet).range, search)
    })
  requireWhole(first.isWhole)
}

function requireWhole(isWhole: boolean): void {
  if (!isWhole) throw new UnreadableFile('a directory of its Exif ends too early')
}

/** A block that a program has overwritten with zeros has nothing. */
async function isEmpty(block: ByteSource): Promise<boolean> {
  const header = await block.read(0, Math.min(8, block.size))
  return header.every((byte) => byte === 0)
}

class ExifTexts {
  readonly #block: ByteSource
  readonly #format: TiffFormat
  readonly #entries: readonly TiffEntry[]

  constructor(block: ByteSource, format: TiffFormat, entries: readonly TiffEntry[]) {
    this.#block = block
    this.#format = format
    this.#entries = entries
  }

  /** The text of a tag; empty if there is none. Throws UnreadableFile. */
  async read(tag: number): Promise<string> {
    const entry = this.#entries.find((each) => each.tag === tag)
    if (!entry) return ''
    const { start, end } = placeOf(this.#block, this.#format, entry).range
    return cleanText(await this.#block.read(start, Math.min(maxText, end - start)))
  }

  /** Empty if the text is damaged, too. */
  async readIfWhole(tag: number): Promise<string> {
    try {
      return await this.read(tag)
    } catch (error) {
      if (!(error instanceof UnreadableFile || error instanceof RangeError)) throw error
      return ''
    }
  }
}

async function searchTexts(texts: ExifTexts, search: TimeSearch): Promise<void> {
  for (const name of ['original', 'digitized'] as const)
    await search.attempt(async () => {
      const text = await texts.read(tags[name].time)
      const taken = parseTimeText(text)
      if (taken === null) return
      const fraction = /^\d+/.exec(await texts.readIfWhole(tags[name].fraction))?.[0] ?? ''
      search.add(sources[name], {
        time: taken.time + (taken.time % 1000 === 0 ? Number(fraction.slice(0, 3).padEnd(3, '0')) : 0),
        offset: taken.offset ?? (await offsetOf(texts, name, text)),
      })
    })
}

/** The offset of a time; or else that of another one that is the same or missing, because many programs write only one offset. */
async function offsetOf(texts: ExifTexts, name: keyof typeof tags, text: string): Promise<number | null> {
  for (const other of [name, 'original', 'digitized', 'changed'] as const) {
    const { time, offset } = tags[other]
    const parsed = parseOffset(await texts.readIfWhole(offset))
    if (parsed === null) continue
    if (other === name || ['', text].includes(await texts.readIfWhole(time))) return parsed
  }
  return null
}
