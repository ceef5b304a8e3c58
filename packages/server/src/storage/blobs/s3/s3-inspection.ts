import { createHash, randomBytes } from 'node:crypto'
import { Fault } from '../../../core/faults.ts'
import type { S3Location } from '../../../core/storage-urls.ts'
import { type BlobInspection, EntryUnmovable } from '../blobs.ts'
import { StoreError } from './errors.ts'
import { createS3Clients, meaningOf, ObjectCalls } from './object-calls.ts'

const lostAndFound = 'lost+found/'

/** Bytes of one server-side copy. */
const maxCopy = 1024 ** 3

/** Lists the objects below the prefix. Quarantined ones are copied to `lost+found/` below it by the store, and then removed. */
export async function openS3Inspection(location: S3Location): Promise<BlobInspection> {
  const { bucket, prefix } = location
  const calls = new ObjectCalls(createS3Clients(location), bucket)

  async function copy(from: string, size: number, to: string): Promise<void> {
    if (size === 0) return await calls.put(to, new Uint8Array(0), createHash('sha256').digest())
    const upload = await calls.createMultipart(to)
    try {
      const parts = []
      for (let start = 0; start < size; start += maxCopy) {
        const end = Math.min(start + maxCopy, size) - 1
        parts.push(
          await calls.copyPart({ key: to, upload, number: parts.length + 1 }, { key: from, start, end }),
        )
      }
      await calls.complete(to, upload, parts)
    } catch (error) {
      await calls.abort(to, upload).catch(() => undefined)
      throw error
    }
  }

  return {
    async *entries() {
      for await (const { key, size } of calls.list(prefix)) {
        const path = key.slice(prefix.length)
        if (path.startsWith(lostAndFound)) continue
        const meaning = meaningOf(prefix, key)
        if (meaning.kind === 'own') continue
        yield meaning.kind === 'foreign' ? { kind: 'foreign', path } : { ...meaning, path, size }
      }
    },

    exists: async ({ path }) => (await calls.head(`${prefix}${path}`)) !== null,

    async quarantine(entry) {
      const from = `${prefix}${entry.path}`
      const size = await calls.head(from)
      if (size === null) return null
      const name = entry.path.replaceAll('/', '.')
      const path = `${lostAndFound}${entry.kind}.${name}.${randomBytes(4).toString('hex')}`
      await copy(from, size, `${prefix}${path}`).catch(async (error: unknown) => {
        // Ceph decodes the name of the source twice, and does not find one with a percent sign or a question mark.
        if (isUnknownKey(error) && (await calls.head(from)) !== null)
          throw new EntryUnmovable(`${entry.path} cannot be copied`, { cause: error })
        throw error
      })
      await calls.remove(from)
      return path
    },

    async setAside(name, bytes) {
      const path = `${lostAndFound}${name}.${randomBytes(4).toString('hex')}`
      await calls.put(`${prefix}${path}`, bytes, createHash('sha256').update(bytes).digest())
      return path
    },
  }
}

const isUnknownKey = (error: unknown): boolean =>
  error instanceof Fault && error.cause instanceof StoreError && error.cause.reason === 'NoSuchKey'
