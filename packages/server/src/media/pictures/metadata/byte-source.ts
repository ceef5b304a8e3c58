import { open } from 'node:fs/promises'
import { type ByteSource, type Range, UnreadableFile } from './pieces.ts'

/** Bytes that are fetched at least. All fetched ranges start at a multiple of it. */
const block = 65_536

/** Bytes that are fetched at once to search them, and the largest range that is kept in memory. */
const readAhead = 1024 * 1024

/** Ranges in memory. The directories of a TIFF file and their values are often in different places. */
const maxCached = 16

interface Cached extends Range {
  readonly bytes: Buffer
}

/**
 * A file of `size` bytes. `fetch` is called with ranges of at most `maxFetch` bytes that are in the file. A planner that reads the file many
 * times gets an UnreadableFile: the structure of the file must be hostile.
 */
export function createByteSource(
  size: number,
  fetch: (position: number, length: number) => Promise<Uint8Array>,
  maxFetch: number,
): ByteSource {
  /** The range that was used last is the last one. */
  const cache: Cached[] = []
  let budget = 4 * size + 64 * 1024 * 1024

  async function fetchAll({ start, end }: Range): Promise<Buffer> {
    // A small range costs as much as a block.
    budget -= Math.max(end - start, block)
    if (budget < 0) throw new UnreadableFile('the file must be read too often')
    const bytes = Buffer.allocUnsafeSlow(end - start)
    for (let done = 0; done < bytes.byteLength; ) {
      const part = await fetch(start + done, Math.min(maxFetch, bytes.byteLength - done))
      if (part.byteLength === 0) throw new UnreadableFile('the file ends too early')
      bytes.set(part, done)
      done += part.byteLength
    }
    return bytes
  }

  function findCached({ start, end }: Range): Cached | undefined {
    const index = cache.findLastIndex((range) => range.start <= start && end <= range.end)
    const [found] = index < 0 ? [] : cache.splice(index, 1)
    if (found) cache.push(found)
    return found
  }

  /** The range, which is extended to whole blocks, and to `minLength` bytes. */
  async function load({ start, end }: Range, minLength: number): Promise<Cached> {
    const from = start - (start % block)
    const to = Math.min(size, Math.max(Math.ceil(end / block) * block, from + minLength))
    const loaded = { start: from, end: to, bytes: await fetchAll({ start: from, end: to }) }
    cache.push(loaded)
    if (cache.length > maxCached) cache.shift()
    return loaded
  }

  return {
    size,
    async read(position, length) {
      const range = { start: position, end: position + length }
      if (position < 0 || range.end > size) throw new UnreadableFile('the file ends too early')
      const found = findCached(range)
      if (!found && length > readAhead) return fetchAll(range)
      const { start, bytes } = found ?? (await load(range, block))
      return bytes.subarray(position - start, range.end - start)
    },
    async readSome(position) {
      if (position < 0 || position >= size) throw new UnreadableFile('the file ends too early')
      const range = { start: position, end: position + 1 }
      const { start, bytes } = findCached(range) ?? (await load(range, readAhead))
      return bytes.subarray(position - start)
    },
  }
}

/** Opens a file, which is closed after the work. */
export async function withFile<T>(path: string, work: (source: ByteSource) => Promise<T>): Promise<T> {
  const file = await open(path)
  try {
    const fetch = async (position: number, length: number) => {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position)
      return buffer.subarray(0, bytesRead)
    }
    return await work(createByteSource((await file.stat()).size, fetch, readAhead))
  } finally {
    await file.close()
  }
}

/** A part of a file as a file of its own. */
export const partOf = (source: ByteSource, { start, end }: Range): ByteSource => ({
  size: end - start,
  async read(position, length) {
    if (position < 0 || position + length > end - start) throw new UnreadableFile('a part ends too early')
    return source.read(start + position, length)
  },
  async readSome(position) {
    if (position < 0 || position >= end - start) throw new UnreadableFile('a part ends too early')
    return (await source.readSome(start + position)).subarray(0, end - start - position)
  },
})
