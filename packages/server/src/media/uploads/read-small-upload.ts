import { resumed } from '../receive-files.ts'

/**
 * Reads a whole upload of `length` bytes into memory. `bytes` is null if the source has other bytes, fails, or takes longer than
 * `maxDuration` milliseconds: then `rest` has all that it would have had.
 */
export async function readSmallUpload(
  source: AsyncIterable<Uint8Array>,
  length: number,
  maxDuration: number,
  now: () => number,
): Promise<
  | { readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly bytes: null; readonly rest: AsyncIterable<Uint8Array> }
> {
  const deadline = now() + maxDuration
  const buffers = source[Symbol.asyncIterator]()
  const bytes = new Uint8Array(length)
  let size = 0
  const rest = (next: readonly Uint8Array[], others: AsyncIterator<Uint8Array>) => ({
    bytes: null,
    rest: resumed([bytes.subarray(0, size), ...next], others),
  })
  try {
    for (;;) {
      const { done, value } = await buffers.next()
      if (done) return size === length ? { bytes } : rest([], buffers)
      if (size + value.byteLength > length || now() >= deadline) return rest([value], buffers)
      bytes.set(value, size)
      size += value.byteLength
    }
  } catch (error) {
    return rest([], { next: () => Promise.reject(error) })
  }
}
