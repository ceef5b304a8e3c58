import type { Upload } from '../../catalog/uploads.ts'
import { Fault } from '../../core/fault.ts'

/** A chunk as its request describes it, before its bytes are read. */
export interface ChunkHeader {
  readonly offset: number
  /** The length of the file, where this request declares it. */
  readonly length?: number | null
  /** Bytes of the chunk, where known. */
  readonly declaredBytes?: number
}

/**
 * Throws the Fault for a chunk that does not fit its upload: `upload-offset-conflict`, `upload-malformed` or
 * `file-too-large`. The quotations are from tus 1.0.0.
 */
export function checkChunk(
  upload: Pick<Upload, 'offset' | 'length'>,
  { offset, length = null, declaredBytes = 0 }: ChunkHeader,
  maxFileSize: number,
): void {
  // Core, PATCH: "The Upload-Offset header's value MUST be equal to the current offset of the resource. […] If the
  // offsets do not match, the Server MUST respond with the 409 Conflict status without modifying the upload resource."
  if (offset !== upload.offset)
    throw new Fault('upload-offset-conflict', `The upload is at offset ${upload.offset}.`)
  if (length !== null) checkLength(upload, length, maxFileSize)
  const end = length ?? upload.length ?? maxFileSize
  if (offset + declaredBytes > end)
    throw new Fault('file-too-large', `No more than ${end - offset} bytes are expected here.`)
}

function checkLength(
  { offset, length: known }: Pick<Upload, 'offset' | 'length'>,
  length: number,
  maxFileSize: number,
): void {
  // Creation: "Once set the length MUST NOT be changed." Clients repeat it when they retry the chunk that declared it.
  if (known !== null && length !== known)
    throw new Fault('upload-malformed', `Upload-Length was declared as ${known} and cannot be changed.`)
  if (length < offset)
    throw new Fault('upload-malformed', `Upload-Length must be at least the offset, ${offset}.`)
  checkFileSize(length, maxFileSize)
}

/**
 * Creation: "If the length of the upload exceeds the maximum, […] the Server MUST respond with the 413 Request Entity Too
 * Large status."
 */
export function checkFileSize(length: number, maxFileSize: number): void {
  if (length > maxFileSize) throw new Fault('file-too-large', `A file may have at most ${maxFileSize} bytes.`)
}
