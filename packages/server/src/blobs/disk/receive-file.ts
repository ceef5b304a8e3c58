import { createHash } from 'node:crypto'
import { Fault } from '../../core/fault.ts'
import { headLength, type ReceivedBlob } from '../received-blob.ts'
import { createSyncedFile } from './create-synced-file.ts'
import { asStorageFault, type Files, type NewFile } from './files.ts'

/**
 * Streams `source` into a new file at `path`, synced when it resolves. Throws Fault `file-too-large` above `limit`
 * bytes, Fault `storage-full`, and the source's error, and then leaves no file.
 */
export async function receiveFile(
  files: Pick<Files, 'create' | 'unlink'>,
  path: string,
  source: AsyncIterable<Uint8Array>,
  limit: number,
): Promise<Omit<ReceivedBlob, 'id' | 'handle'>> {
  try {
    return await createSyncedFile(files, path, (file) => writeAndHash(file, source, limit))
  } catch (error) {
    throw asStorageFault(error)
  }
}

async function writeAndHash(
  file: NewFile,
  source: AsyncIterable<Uint8Array>,
  limit: number,
): Promise<Omit<ReceivedBlob, 'id' | 'handle'>> {
  const hash = createHash('sha256')
  const head: Uint8Array[] = []
  let missing = headLength
  let size = 0
  for await (const chunk of source) {
    size += chunk.byteLength
    if (size > limit)
      throw new Fault('file-too-large', `The file is larger than the limit of ${limit} bytes.`)
    // Hashing overlaps the write.
    const written = file.write(chunk)
    hash.update(chunk)
    if (missing > 0 && chunk.byteLength > 0) {
      // A copy: a view would keep the whole chunk in memory.
      head.push(new Uint8Array(chunk.subarray(0, missing)))
      missing -= Math.min(missing, chunk.byteLength)
    }
    await written
  }
  return { size, sha256: hash.digest(), head: Buffer.concat(head) }
}
