import { webcrypto } from 'node:crypto'
import type { ItemId } from '../../../core/media-id.ts'
import type { UploadId } from '../../../core/upload-id.ts'
import type { PartialUpload, PartLog, RecordedParts } from '../../partial-uploads.ts'
import type { HeldIntents } from '../held-intents.ts'
import { blobKey } from '../keys.ts'
import type { ObjectCalls } from '../object-calls.ts'
import type { Part } from '../part-memory.ts'
import { conflict } from './errors.ts'

export type SentPart = RecordedParts['parts'][number]

type UploadIds = Pick<PartialUpload, 'id' | 'itemId'>

/** The multipart uploads of partial uploads, and their parts. The methods throw Fault `upload-offset-conflict`. */
export interface UploadParts {
  keyOf(upload: Pick<PartialUpload, 'itemId'>): string
  recorded(id: UploadId): Promise<RecordedParts>
  recordIntent(itemId: ItemId): Promise<void>
  /** The id of the multipart upload, which is created if none is recorded. */
  begin(upload: UploadIds): Promise<string>
  /** Sends the part with this number: `pieceBytes` bytes of recorded pieces, then its own bytes. Frees the part. */
  send(upload: UploadIds, number: number, part: Part, pieceBytes: number): Promise<SentPart>
}

export function createUploadParts({
  calls,
  intents,
  log,
  prefix,
}: {
  readonly calls: Pick<ObjectCalls, 'createMultipart' | 'abort' | 'putPart'>
  readonly intents: HeldIntents
  readonly log: PartLog
  readonly prefix: string
}): UploadParts {
  const keyOf: UploadParts['keyOf'] = ({ itemId }) => blobKey(prefix, itemId)

  async function recorded(id: UploadId): Promise<RecordedParts> {
    const found = await log.read(id)
    // Another process has finished or removed it.
    if (found === null) throw conflict()
    return found
  }

  /** While the upload is not finished, the sweep does not take the intent, so its deadline needs no extension. */
  async function recordIntent(itemId: ItemId): Promise<void> {
    await intents.hold(itemId)
    intents.release([itemId])
  }

  /** The intent is recorded before the multipart upload is created, and a sweep aborts one that no upload names. */
  async function begin({ id, itemId }: UploadIds): Promise<string> {
    const known = (await recorded(id)).multipart
    if (known !== null) return known
    await recordIntent(itemId)
    const key = keyOf({ itemId })
    const created = await calls.createMultipart(key)
    const used = await log.begin(id, created)
    if (used !== created) await calls.abort(key, created)
    if (used === null) throw conflict()
    return used
  }

  return {
    keyOf,
    recorded,
    recordIntent,
    begin,
    async send(upload, number, part, pieceBytes) {
      const multipart = await begin(upload)
      // The pieces are read in the turn of the part, so that few are in memory at once.
      return await part.send(async (own) => {
        const pieces = pieceBytes > 0 ? await log.pieces(upload.id) : []
        if (lengthOf(pieces) !== pieceBytes) throw conflict()
        const bytes = pieceBytes > 0 ? Buffer.concat([...pieces, own]) : own
        const sha256 = new Uint8Array(await webcrypto.subtle.digest('SHA-256', bytes))
        const { etag } = await calls.putPart(keyOf(upload), multipart, number, { bytes, sha256 })
        return { number, size: bytes.byteLength, etag }
      })
    },
  }
}

export const sizeOf = (parts: readonly SentPart[]) => parts.reduce((sum, { size }) => sum + size, 0)

export const lengthOf = (pieces: readonly Uint8Array[]) =>
  pieces.reduce((sum, { byteLength }) => sum + byteLength, 0)
