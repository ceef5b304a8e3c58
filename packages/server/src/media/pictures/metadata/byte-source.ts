import { type ByteSource, UnreadableFile } from './pieces.ts'

/** Bytes that are read at once, because the next ones are often needed too. */
const window = 65_536

/** A file of `size` bytes. `fetch` is called with ranges of at most `maxFetch` bytes that are in the file. */
export function createByteSource(
  size: number,
  fetch: (position: number, length: number) => Promise<Uint8Array>,
  maxFetch: number,
): ByteSource {
  let start = 0
  let cached: Buffer = Buffer.alloc(0)

  async function fetchAll(position: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafeSlow(length)
    for (let done = 0; done < length; ) {
      const part = await fetch(position + done, Math.min(maxFetch, length - done))
      if (part.byteLength === 0) throw new UnreadableFile('the file ends too early')
      bytes.set(part, done)
      done += part.byteLength
    }
    return bytes
  }

  return {
    size,
    async read(position, length) {
      if (position < 0 || position + length > size) throw new UnreadableFile('the file ends too early')
      if (position < start || position + length > start + cached.byteLength) {
        const wanted = Math.min(size - position, Math.max(length, window))
        cached = await fetchAll(position, wanted)
        start = position
      }
      return cached.subarray(position - start, position - start + length)
    },
  }
}
