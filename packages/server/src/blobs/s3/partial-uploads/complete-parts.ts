import type { PartialUpload } from '../../partial-uploads.ts'
import type { ObjectCalls } from '../object-calls.ts'
import { conflict } from './errors.ts'
import type { PendingCompletion } from './pending-completions.ts'
import { sizeOf, type UploadParts } from './upload-parts.ts'

/** Completes the object of an upload from its parts. False if another process has completed it, perhaps with other bytes. */
export async function completeParts(
  {
    uploadParts,
    calls,
  }: { readonly uploadParts: UploadParts; readonly calls: Pick<ObjectCalls, 'complete' | 'head'> },
  upload: Pick<PartialUpload, 'id' | 'itemId'>,
  { size, parts: sent, tail }: PendingCompletion,
): Promise<boolean> {
  if (tail === null) return false
  const key = uploadParts.keyOf(upload)
  const { parts: earlier } = await uploadParts.recorded(upload.id)
  const parts = [...earlier, ...sent]
  const pieceBytes = size - tail.size - sizeOf(parts)
  // The first part that this process sent begins with the bytes of the recorded pieces.
  if (pieceBytes < 0 || (sent.length > 0 && pieceBytes > 0)) throw conflict()
  try {
    const hasRest = pieceBytes + tail.size > 0
    const last = hasRest ? [await uploadParts.send(upload, parts.length + 1, tail, pieceBytes)] : []
    await calls.complete(key, await uploadParts.begin(upload), [...parts, ...last])
    return true
  } catch (error) {
    if ((await calls.head(key)) === size) return false
    throw error
  }
}
