import { Fault } from '../../../core/fault.ts'
import { type PartialChunk, PartialUploadLost } from '../../partial-uploads.ts'
import type { ObjectCalls } from '../object-calls.ts'
import { readRange } from '../read-object.ts'
import { lost } from './errors.ts'

/** Compares a chunk with the bytes of the completed object of an upload. Throws PartialUploadLost if they differ. */
export async function compareChunk(
  calls: Pick<ObjectCalls, 'get' | 'timeouts'>,
  object: { readonly key: string; readonly length: number },
  { offset, source }: PartialChunk,
): Promise<{ readonly size: number; readonly failure: unknown }> {
  let size = offset
  try {
    for await (const bytes of source) {
      const stored = Buffer.alloc(bytes.byteLength)
      if (size + bytes.byteLength > object.length)
        throw new Fault('file-too-large', 'No more bytes are expected here.')
      if (bytes.byteLength > 0) await readRange(calls, object.key, size, stored)
      if (!stored.equals(bytes)) throw lost('the bytes differ from those that were sent before')
      size += bytes.byteLength
    }
  } catch (error) {
    if (error instanceof PartialUploadLost || error instanceof Fault) throw error
    return { size, failure: error }
  }
  return { size, failure: null }
}
