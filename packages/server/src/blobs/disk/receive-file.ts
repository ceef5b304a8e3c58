import { createHash } from 'node:crypto'
import { Fault } from '../../core/fault.ts'
import { headLength, type ReceivedBlob } from '../blobs.ts'
import { createSyncedFile } from './create-synced-file.ts'
import { asStorageFault, type Files, type NewFile } from './files.ts'

/**
 * Streams `source` into a new file at `path`, synced when it resolves. Throws Fault `file-too-large` above `limit`
 * bytes, Fault `storage-full`, and what the source throws; then no file is left.
 */
export async function receiveFile(
  files: Pick<Files, 'create' | 'unlink'>,
  path: string,
  source: AsyncIterable<Uint8Array>,
  limit: number,
): Promise<Omit<ReceivedBlob, 'handle'>> {
  try {
    return await createSyncedFile(files, path, (file) => writeThrough(file, source, limit))
  } catch (error) {
    throw asStorageFault(error)
  }
}

async function writeThrough(
  file: NewFile,
  source: AsyncIterable<Uint8Array>,
  limit: number,
): Promise<Omit<ReceivedBlob, 'handle'>> {
  const hash = createHash('sha256')
  const head: Uint8Array[] = []
  let headMissing = headLength
  let size = 0
  for await (const chunk of source) {
    size += chunk.byteLength
    if (size > limit)
      throw new Fault('file-too-large', `The file is larger than the limit of ${limit} bytes.`)
    // The disk works while this thread hashes.
    const written = file.write(chunk)
    hash.update(chunk)
    if (headMissing > 0 && chunk.byteLength > 0) {
      // A copy: a view would keep the whole chunk in memory, and Buffer's own slice makes views.
      head.push(new Uint8Array(chunk.subarray(0, headMissing)))
      headMissing -= Math.min(headMissing, chunk.byteLength)
    }
    await written
  }
  return { size, sha256: hash.digest(), head: Buffer.concat(head) }
}
