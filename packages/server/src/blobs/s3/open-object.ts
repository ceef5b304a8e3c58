import { Readable } from 'node:stream'
import { BlobTruncatedError, type LocalBytes, type OpenBlob } from '../blobs.ts'
import { openMemoryBlob } from '../memory-blob.ts'
import type { ObjectCalls } from './object-calls.ts'
import { asStoreFault, StoreError } from './s3-errors.ts'

type Calls = Pick<ObjectCalls, 'get' | 'head' | 'timeouts'>

/**
 * Bytes `start` to `end` of an object, both inclusive, as the store sends them. Throws Fault `storage-unavailable` if the store is
 * too slow, and BlobTruncatedError if the object ends before its size or the connection before the object.
 */
export async function* readObject(
  calls: Pick<Calls, 'get' | 'timeouts'>,
  key: string,
  start: number,
  end: number,
): AsyncGenerator<Buffer> {
  if (end < start) return
  const found = await calls.get(key, start, end)
  if (found === null) throw new BlobTruncatedError('a blob was removed')
  const { body } = found
  let missing = end - start + 1
  let timer: NodeJS.Timeout | undefined
  const chunks = body[Symbol.asyncIterator]()
  try {
    for (;;) {
      // Only while this waits for the store: a slow reader of these bytes is no fault of the store.
      timer = setTimeout(
        () => body.destroy(new StoreError('the store sends no more bytes')),
        calls.timeouts.stall,
      )
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
  calls: Pick<Calls, 'get' | 'timeouts'>,
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

/** As `BlobStore.open`. `share` makes a whole object available to other processes. */
export async function openObject(
  {
    calls,
    share,
  }: { readonly calls: Calls; readonly share: (key: string, size: number) => Promise<LocalBytes> },
  key: string,
  wholeUpTo: number,
): Promise<OpenBlob | null> {
  const found = wholeUpTo > 0 ? await openSmall(calls, key, wholeUpTo) : await calls.head(key)
  if (found === null) return null
  return typeof found === 'number' ? remoteBlob({ calls, share }, key, found) : openMemoryBlob(found)
}

/** The bytes of an object of up to `wholeUpTo` bytes, or the size of a larger one. */
async function openSmall(calls: Calls, key: string, wholeUpTo: number): Promise<Buffer | number | null> {
  const found = await calls.get(key, 0, wholeUpTo - 1).catch(async (error: unknown) => {
    // A range of an empty object cannot be satisfied.
    if ((await calls.head(key)) === 0) return { body: Readable.from([]), size: 0 }
    throw error
  })
  if (found === null) return null
  const { body, size } = found
  if (size > wholeUpTo) {
    body.destroy()
    return size
  }
  const bytes = Buffer.allocUnsafeSlow(size)
  await readRange({ get: async () => found, timeouts: calls.timeouts }, key, 0, bytes)
  return bytes
}

function remoteBlob({ calls, share }: Parameters<typeof openObject>[0], key: string, size: number): OpenBlob {
  return {
    size,
    content: { type: 'object', key },
    share: () => share(key, size),
    read: (into, position) => {
      if (position + into.byteLength > size) throw new BlobTruncatedError('a blob ended before its size')
      return readRange(calls, key, position, into)
    },
    stream: (start, end) => Readable.from(readObject(calls, key, start, end), { objectMode: false }),
    close: async () => undefined,
  }
}
