import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { OpenBlob } from '../blobs/blobs.ts'

/** The SHA-256 of a file, in hexadecimal. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

/** The SHA-256 of the whole blob, 32 bytes. Closes the blob. */
export async function hashBlob(blob: OpenBlob): Promise<Buffer> {
  const hash = createHash('sha256')
  if (blob.size === 0) await blob.close()
  else for await (const chunk of blob.stream(0, blob.size - 1)) hash.update(chunk)
  return hash.digest()
}
