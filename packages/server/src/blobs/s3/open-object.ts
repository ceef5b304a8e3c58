import { Readable } from 'node:stream'
import { BlobTruncatedError, type LocalBytes, type OpenBlob } from '../blobs.ts'
import { openMemoryBlob } from '../memory-blob.ts'
import type { ObjectCalls } from './object-calls.ts'
import { readObject, readRange } from './read-object.ts'
import { streamObject } from './stream-object.ts'

type Calls = Pick<ObjectCalls, 'get' | 'head' | 'signUrl' | 'timeouts'>

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
    if ((await calls.head(key)) === 0) return { body: Readable.from([]), size: 0, length: 0 }
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
    content: {
      type: 'object',
      stream: (start, end) => streamObject(calls, key, start, end),
      signUrl: (headers, lifetime) => calls.signUrl(key, headers, lifetime),
    },
    share: () => share(key, size),
    read: (into, position) => {
      if (position + into.byteLength > size) throw new BlobTruncatedError('a blob ended before its size')
      return readRange(calls, key, position, into)
    },
    stream: (start, end) => Readable.from(readObject(calls, key, start, end), { objectMode: false }),
    close: async () => undefined,
  }
}
