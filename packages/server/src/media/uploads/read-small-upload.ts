import { setTimeout } from 'node:timers/promises'
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
  const timer = new AbortController()
  // A client that sends nothing must not keep the memory either.
  const timeout = setTimeout(maxDuration, null, { ref: false, signal: timer.signal }).catch(() => null)
  const buffers = source[Symbol.asyncIterator]()
  const bytes = new Uint8Array(length)
  let size = 0
  const rest = (next: readonly Uint8Array[], others: AsyncIterator<Uint8Array>) => ({
    bytes: null,
    rest: resumed([bytes.subarray(0, size), ...next], others),
  })
  try {
    for (;;) {
      const next = buffers.next()
      const result = await Promise.race([next, timeout])
      if (result === null) return rest([], startingWith(next, buffers))
      const { done, value } = result
      if (done) return size === length ? { bytes } : rest([], buffers)
      if (size + value.byteLength > length || now() >= deadline) return rest([value], buffers)
      bytes.set(value, size)
      size += value.byteLength
    }
  } catch (error) {
    return rest([], { next: () => Promise.reject(error) })
  } finally {
    timer.abort()
  }
}

/** The iterator, whose next result has been requested already. */
function startingWith<T>(next: Promise<IteratorResult<T>>, others: AsyncIterator<T>): AsyncIterator<T> {
  let isFirst = true
  return {
    next() {
      if (!isFirst) return others.next()
      isFirst = false
      return next
    },
    return: async () => {
      // It would wait for the result that was requested.
      others.return?.().catch(() => undefined)
      return { done: true, value: undefined }
    },
  }
}
