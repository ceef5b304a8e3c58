import { crc32 } from 'node:zlib'
import { ByteReader, type ByteWriter } from './postings.ts'

// A chunk has the lists of all keys whose highest bits are its number: a checksum, then for each key, ascending, its distance from the
// previous one, the length of its list and the list.

const checksumLength = 4

/** Begins a chunk at the end of the writer. Returns its start. */
export function beginChunk(writer: ByteWriter): number {
  writer.bytes(new Uint8Array(checksumLength))
  return writer.length - checksumLength
}

/** Completes the chunk that ends at the end of the writer. */
export function sealChunk(writer: ByteWriter, start: number): void {
  const chunk = writer.from(start)
  const view = new DataView(chunk.buffer, chunk.byteOffset, checksumLength)
  view.setUint32(0, crc32(chunk.subarray(checksumLength)))
}

/** The keys and lists of a chunk. Throws RangeError if it is damaged. */
export function* readChunk(
  chunk: Uint8Array,
): Generator<{ readonly key: number; readonly list: Uint8Array }> {
  const content = chunk.subarray(checksumLength)
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  if (chunk.length < checksumLength || view.getUint32(0) !== crc32(content))
    throw new RangeError('a chunk of the index of names is damaged')
  const reader = new ByteReader(content)
  for (let key = 0; !reader.isAtEnd(); ) {
    key += reader.integer()
    yield { key, list: reader.bytes(reader.integer()) }
  }
}

/** The list of a key; null if no item has it. Throws RangeError if the chunk is damaged. */
export function findList(chunk: Uint8Array, wanted: number): Uint8Array | null {
  for (const { key, list } of readChunk(chunk)) if (key >= wanted) return key === wanted ? list : null
  return null
}

/** The number of the chunk of a key, of 2^bits chunks. */
export const chunkOf = (key: number, bits: number): number => (bits === 0 ? 0 : key >>> (32 - bits))
