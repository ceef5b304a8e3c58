import type { PartialUpload } from '../../partial-uploads.ts'
import type { ObjectCalls } from '../object-calls.ts'
import type { Ending } from './endings.ts'
import { conflict } from './errors.ts'
import { sizeOf, type UploadParts } from './upload-parts.ts'

/** Turns the parts of a complete upload into an object. False if another process has done so, perhaps with other bytes. */
export async function completeParts(
  {
    uploadParts,
    calls,
  }: { readonly uploadParts: UploadParts; readonly calls: Pick<ObjectCalls, 'complete' | 'head'> },
  upload: Pick<PartialUpload, 'id' | 'mediaId'>,
  { size, parts: sent, tail }: Ending,
): Promise<boolean> {
  if (tail === null) return false
  const key = uploadParts.keyOf(upload)
  const { parts: earlier } = await uploadParts.recorded(upload.id)
  const before = [...earlier, ...sent]
  const inPieces = size - tail.size - sizeOf(before)
  // The first part that was sent contains the pieces.
  if (inPieces < 0 || (sent.length > 0 && inPieces > 0)) throw conflict()
  try {
    const isLonger = inPieces + tail.size > 0
    const last = isLonger ? [await uploadParts.send(upload, before.length + 1, tail, inPieces)] : []
    await calls.complete(key, await uploadParts.begin(upload), [...before, ...last])
    return true
  } catch (error) {
    if ((await calls.head(key)) === size) return false
    throw error
  }
}
