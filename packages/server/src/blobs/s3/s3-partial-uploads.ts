import { createHash } from 'node:crypto'
import type { UploadId } from '../../core/upload-id.ts'
import { createPartialUploadHashes } from '../partial-upload-hashes.ts'
import type { PartialChunk, PartialUpload, PartialUploadStore, PartLog } from '../partial-uploads.ts'
import { headLength, type ReceivedBlob } from '../received-blob.ts'
import type { HeldIntents } from './held-intents.ts'
import type { ObjectCalls } from './object-calls.ts'
import type { PartMemory } from './part-memory.ts'
import { compareChunk } from './partial-uploads/compare-chunk.ts'
import { completeParts } from './partial-uploads/complete-parts.ts'
import { conflict, faultOf, lost } from './partial-uploads/errors.ts'
import { createPendingCompletions } from './partial-uploads/pending-completions.ts'
import { receiveChunk } from './partial-uploads/receive-chunk.ts'
import { createUploadParts, lengthOf } from './partial-uploads/upload-parts.ts'
import { readObject, readRange } from './read-object.ts'

/**
 * Stores partial uploads as multipart uploads, which the catalog records. Bytes that are too few for a part are stored in the catalog.
 * The number of a part is its position, because Ceph completes a multipart upload only if all parts that were sent are listed: a part of a
 * process that was killed is sent again with the same bytes. Two processes that write at the same offset send equal parts, or the upload
 * is lost: the store compares the parts with their recorded tags. A multipart upload can be completed only once. So processes need no
 * lock: the offset in the catalog shows which of them has stored its bytes.
 */
export function createS3PartialUploads(parts: {
  readonly calls: ObjectCalls
  readonly memory: PartMemory
  readonly intents: HeldIntents
  readonly log: PartLog
  readonly prefix: string
  /** Called with each blob that another process may also be turning into the same item. */
  readonly onComplete: (blob: ReceivedBlob) => void
}): PartialUploadStore {
  const { calls, memory, log } = parts
  const hashes = createPartialUploadHashes()
  const completions = createPendingCompletions()
  const uploadParts = createUploadParts(parts)
  const { keyOf } = uploadParts

  async function isObject(upload: PartialUpload): Promise<boolean> {
    const size = await calls.head(keyOf(upload))
    return size !== null && size === (upload.length ?? size)
  }

  /** Whether the object exists: an earlier attempt completed the upload, and its item was not added. */
  async function isCompleted(upload: PartialUpload): Promise<boolean> {
    if (upload.length === null || (await uploadParts.recorded(upload.id)).multipart === null) return false
    return await isObject(upload)
  }

  /** Records the bytes up to `to`. */
  async function move(
    id: UploadId,
    added: Parameters<PartLog['store']>[1],
    { offset, expiresAt }: PartialChunk,
    to: number,
  ): Promise<void> {
    if (await log.store(id, added, { from: offset, to, expiresAt })) return
    // Another process may have stored other bytes up to the same offset.
    hashes.forget(id)
    throw conflict()
  }

  async function hashObject(key: string, size: number): Promise<Uint8Array> {
    const hash = createHash('sha256')
    for await (const bytes of readObject(calls, key, 0, size - 1)) hash.update(bytes)
    return hash.digest()
  }

  async function abortOthers(key: string): Promise<void> {
    for await (const found of calls.multipartUploads(key)) await calls.abort(found.key, found.upload)
  }

  async function takeCompletion(id: UploadId, size: number) {
    const completion = await completions.take(id, size)
    if (completion === null) throw lost('the end of a partial upload is missing')
    return completion
  }

  return {
    async append(upload, chunk) {
      await completions.remove(upload.id)
      if (await isCompleted(upload)) {
        const object = { key: keyOf(upload), length: upload.length ?? 0 }
        const { size, failure } = await compareChunk(calls, object, chunk)
        if (failure !== null && chunk.isAtomic) return { size: chunk.offset, failure, isRecorded: true }
        const isEnd = size === upload.length
        if (isEnd) completions.add(upload.id, { size, parts: [], tail: null })
        else await move(upload.id, { parts: [], piece: new Uint8Array(0) }, chunk, size)
        return { size, failure, isRecorded: !isEnd }
      }
      const received = await receiveChunk({ uploadParts, memory, hashes, isObject }, upload, chunk)
      const { size, failure, sent, part } = received
      if (part === null) return { size, failure, isRecorded: true }
      if (size === upload.length) {
        completions.add(upload.id, { size, parts: sent, tail: part })
        return { size, failure, isRecorded: false }
      }
      const piece = await part.take()
      if (size > chunk.offset) await move(upload.id, { parts: sent, piece }, chunk, size)
      return { size, failure, isRecorded: true }
    },

    async complete(id, size, itemId) {
      const completion = await takeCompletion(id, size)
      const key = keyOf({ itemId })
      try {
        if (size === 0) {
          await uploadParts.recordIntent(itemId)
          await calls.put(key, new Uint8Array(0), createHash('sha256').digest())
        } else {
          const isOwn = await completeParts({ uploadParts, calls }, { id, itemId }, completion)
          if (!isOwn) hashes.forget(id)
          await abortOthers(key).catch(() => undefined)
        }
        const sha256 = await hashes.digest(id, size, () => hashObject(key, size))
        const head = Buffer.alloc(Math.min(size, headLength))
        await readRange(calls, key, 0, head)
        const blob = { id: itemId, handle: key, size, sha256, head }
        parts.onComplete(blob)
        return blob
      } catch (error) {
        throw faultOf(error)
      } finally {
        await completion.tail?.discard()
      }
    },

    async read(id, size) {
      const { tail } = await takeCompletion(id, size)
      if (tail === null) throw lost('the end of a partial upload is missing')
      const pieces = [...(await log.pieces(id)), await tail.take()]
      hashes.forget(id)
      if (lengthOf(pieces) !== size) throw conflict()
      return new Uint8Array(Buffer.concat(pieces, size))
    },

    // A completed multipart upload stays an object: the next chunk is compared with it.
    reclaim: async () => undefined,

    // The catalog has removed its records. A sweep of the intent aborts the multipart upload.
    async remove(id) {
      hashes.forget(id)
      await completions.remove(id)
    },
  }
}
