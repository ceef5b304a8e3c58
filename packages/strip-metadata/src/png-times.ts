import { inflateSync } from 'node:zlib'
import { searchExif } from './exif-times.ts'
import { type ByteSource, createMemorySource, partOf, type Range, UnreadableFile } from './pieces.ts'
import { searchXmp, type TimeSearch } from './time-search.ts'

/** Bytes at the end of a PNG file in which chunks behind its pixels are searched. */
const searchedEnd = 65_536

/** Chunks that may have a time at the end of the file. */
const atEnd = /eXIf|iTXtXML:com\.adobe\.xmp\0|(?:tEXt|zTXt)Raw profile type /g
const maxAtEnd = 8

interface Chunk extends Range {
  readonly type: string
}

export async function searchPng(source: ByteSource, search: TimeSearch): Promise<void> {
  for await (const chunk of chunksOf(source, 8, search.limits.parts)) {
    if (chunk.type === 'IDAT' && !search.limits.followsPixels)
      return searchBehindPixels(source, chunk.end, search)
    await search.attempt(() => searchChunk(source, chunk, search))
  }
}

/** The chunks of a PNG file from a position on, up to the last one. Throws UnreadableFile if there are more than `limit`. */
async function* chunksOf(source: ByteSource, first: number, limit: number): AsyncGenerator<Chunk> {
  let position = first
  for (let parts = 0; position + 12 <= source.size; parts += 1) {
    if (parts >= limit) throw new UnreadableFile('it has too many chunks')
    const header = await source.read(position, 8)
    const [start, type] = [position + 8, header.toString('latin1', 4, 8)]
    const end = start + header.readUInt32BE(0)
    yield { type, start, end }
    if (type === 'IEND') return
    position = end + 4
  }
}

/**
 * Pixels are in very many chunks, often of 8 kB, all of which would have to be read. So the chunks behind them are searched by their types, and
 * are those from which chunks lead to the last one.
 */
async function searchBehindPixels(source: ByteSource, pixels: number, search: TimeSearch): Promise<void> {
  const from = Math.max(pixels, source.size - searchedEnd)
  if (from >= source.size) return
  const text = (await source.read(from, source.size - from)).toString('latin1')
  for (const { index } of [...text.matchAll(atEnd)].slice(0, maxAtEnd)) {
    const chunks: Chunk[] = []
    for await (const chunk of chunksOf(source, from + index - 4, search.limits.parts)) chunks.push(chunk)
    if (chunks.at(-1)?.type !== 'IEND') continue
    for (const chunk of chunks) await search.attempt(() => searchChunk(source, chunk, search))
    return
  }
}

/** Bytes of a keyword with its end. */
const maxKeyword = 80

/** Keywords of texts with XMP or Exif. ImageMagick and others write profiles as hexadecimal digits. */
const xmpKeyword = 'XML:com.adobe.xmp'
const profileKeyword = /^Raw profile type (?:exif|APP1|xmp)$/

async function searchChunk(
  source: ByteSource,
  { type, start, end }: Chunk,
  search: TimeSearch,
): Promise<void> {
  if (type === 'eXIf') return searchExif(partOf(source, { start, end }), search)
  if (!['iTXt', 'tEXt', 'zTXt'].includes(type)) return
  const head = await source.read(start, Math.min(maxKeyword, end - start))
  const keyword = head.toString('latin1').replace(/\0.*/s, '')
  const isProfile = profileKeyword.test(keyword)
  if (!isProfile && keyword !== xmpKeyword) return
  const { loaded } = search.limits
  const isWhole = end - start <= loaded
  const value = (await source.read(start, Math.min(loaded, end - start))).subarray(keyword.length + 1)
  const text = textIn(type, value, loaded)
  await searchProfile(isProfile ? fromHex(text) : text, search)
  if (!isWhole) throw new UnreadableFile('its text with a time is too long')
}

/** The text of a chunk, from what follows its keyword: flags, names and a text that may be compressed (PNG, 11.3.3). */
function textIn(type: string, value: Buffer, limit: number): Buffer {
  if (type === 'tEXt') return value
  if (type === 'zTXt') return inflated(value.subarray(1), limit)
  const language = value.indexOf(0, 2)
  const name = value.indexOf(0, language + 1)
  if (language < 0 || name < 0) throw new UnreadableFile('a text has no end')
  const text = value.subarray(name + 1)
  return value[0] === 0 ? text : inflated(text, limit)
}

function inflated(bytes: Buffer, limit: number): Buffer {
  try {
    return inflateSync(bytes, { maxOutputLength: limit })
  } catch (cause) {
    throw new UnreadableFile('a compressed text is damaged or too long', { cause })
  }
}

/** The bytes of a profile, whose name and length precede its digits. */
function fromHex(text: Buffer): Buffer {
  const digits = /^\s*\S+\s+\d+\s+([\da-f\s]*)/i.exec(text.toString('latin1'))?.[1]
  if (digits === undefined) throw new UnreadableFile('a profile has an unknown form')
  return Buffer.from(digits.replace(/\s/g, ''), 'hex')
}

const xmpPrefix = 'http://ns.adobe.com/xap/1.0/\0'

/** Exif, or XMP, which may have the prefix of JPEG files. */
async function searchProfile(bytes: Buffer, search: TimeSearch): Promise<void> {
  const start = bytes.toString('latin1', 0, xmpPrefix.length)
  const source = createMemorySource(bytes)
  if (/^(?:Exif|II|MM)/.test(start)) return searchExif(source, search)
  const first = start === xmpPrefix ? xmpPrefix.length : 0
  await searchXmp(source, { start: first, end: source.size }, search)
}
