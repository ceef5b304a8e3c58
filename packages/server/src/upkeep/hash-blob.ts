import { createHash } from 'node:crypto'
import type { OpenBlob } from '../blobs/blobs.ts'

/** The SHA-256 of the whole blob, which it closes. */
export async function hashBlob(blob: OpenBlob): Promise<Buffer> {
  const hash = createHash('sha256')
  if (blob.size === 0) await blob.close()
  else for await (const chunk of blob.stream(0, blob.size - 1)) hash.update(chunk)
  return hash.digest()
}
