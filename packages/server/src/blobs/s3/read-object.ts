import { BlobRemovedError, BlobTruncatedError } from '../blobs.ts'
import type { ObjectCalls } from './object-calls.ts'
import { asStoreFault, stalled } from './s3-errors.ts'

/**
 * Bytes `start` to `end` of an object, both inclusive, as the store sends them. Throws Fault `storage-unavailable` if the store is
 * too slow, and BlobTruncatedError if the object ends before its size or the connection before the object.
 */
export async function* readObject(
  calls: Pick<ObjectCalls, 'get' | 'timeouts'>,
  key: string,
  start: number,
  end: number,
): AsyncGenerator<Buffer> {
  if (end < start) return
  const found = await calls.get(key, start, end)
  if (found === null) throw new BlobRemovedError('a blob was removed')
  const { body } = found
  let missing = end - start + 1
  let timer: NodeJS.Timeout | undefined
  const chunks = body[Symbol.asyncIterator]()
  try {
    for (;;) {
      // Only while this waits for the store: a slow reader of these bytes is no fault of the store.
      timer = setTimeout(() => body.destroy(stalled()), calls.timeouts.stall)
      const { done, value } = await chunks.next()
      clearTimeout(timer)
      if (done) break
      const bytes: Buffer = value
      missing -= bytes.byteLength
      if (missing < 0) throw new BlobTruncatedError('the store sent more bytes than were requested')
      yield bytes
    }
  } catch (error) {
    throw asStoreFault(error)
  } finally {
    clearTimeout(timer)
    body.destroy()
  }
  if (missing > 0) throw new BlobTruncatedError('a blob ended before its size')
}

/** Reads the whole range into memory. Throws as readObject. */
export async function readRange(
  calls: Pick<ObjectCalls, 'get' | 'timeouts'>,
  key: string,
  start: number,
  into: Uint8Array,
): Promise<void> {
  let at = 0
  for await (const bytes of readObject(calls, key, start, start + into.byteLength - 1)) {
    into.set(bytes, at)
    at += bytes.byteLength
  }
}
