import { createHash, webcrypto } from 'node:crypto'
import { Fault } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import type { UploadId } from '../../core/upload-id.ts'
import { createPartialUploadHashes } from '../partial-upload-hashes.ts'
import {
  type PartialChunk,
  type PartialUpload,
  PartialUploadLost,
  type PartialUploadStore,
  type PartLog,
  type RecordedParts,
} from '../partial-uploads.ts'
import { headLength, type ReceivedBlob } from '../received-blob.ts'
import type { HeldIntents } from './held-intents.ts'
import { blobKey } from './keys.ts'
import { type ObjectCalls, UncertainOutcome } from './object-calls.ts'
import { readObject, readRange } from './open-object.ts'
import { type Part, type PartMemory, partLength } from './part-memory.ts'
import { StoreError } from './s3-errors.ts'

type SentPart = RecordedParts['parts'][number]

/** The last bytes of a complete upload, until it is turned into a blob. */
interface Ending {
  readonly size: number
  /** Sent, not recorded. */
  readonly parts: readonly SentPart[]
  /** Bytes after the parts and the recorded pieces; null if the object is complete already. */
  readonly tail: Part | null
}

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
  const { calls, memory, intents, log, prefix } = parts
  const hashes = createPartialUploadHashes()
  const endings = new Map<UploadId, Ending>()
  const keyOf = ({ mediaId }: Pick<PartialUpload, 'mediaId'>) => blobKey(prefix, mediaId)

  async function recorded(id: UploadId): Promise<RecordedParts> {
    const found = await log.read(id)
    // Another process has finished or removed it.
    if (found === null) throw conflict()
    return found
  }

  /** While the upload is not finished, the sweep does not take the intent, so its deadline needs no extension. */
  async function recordIntent(mediaId: MediaId): Promise<void> {
    await intents.hold(mediaId)
    intents.release([mediaId])
  }

  /** The id of the multipart upload. The intent is recorded before it is created, and a sweep aborts one that no upload names. */
  async function begin({ id, mediaId }: Pick<PartialUpload, 'id' | 'mediaId'>): Promise<string> {
    const known = (await recorded(id)).multipart
    if (known !== null) return known
    await recordIntent(mediaId)
    const key = keyOf({ mediaId })
    const created = await calls.createMultipart(key)
    const used = await log.begin(id, created)
    if (used !== created) await calls.abort(key, created)
    if (used === null) throw conflict()
    return used
  }

  /** Sends a part: `inPieces` bytes of pieces, then its own bytes. The pieces are read in its turn, so that few are in memory at once. */
  async function sendPart(
    upload: Pick<PartialUpload, 'id' | 'mediaId'>,
    number: number,
    part: Part,
    inPieces: number,
  ): Promise<SentPart> {
    const multipart = await begin(upload)
    return await part.send(async (own) => {
      const pieces = inPieces > 0 ? await log.pieces(upload.id) : []
      if (lengthOf(pieces) !== inPieces) throw conflict()
      const bytes = inPieces > 0 ? Buffer.concat([...pieces, own]) : own
      const sha256 = new Uint8Array(await webcrypto.subtle.digest('SHA-256', bytes))
      const { etag } = await calls.putPart(keyOf(upload), multipart, number, { bytes, sha256 })
      return { number, size: bytes.byteLength, etag }
    })
  }

  async function forget(id: UploadId): Promise<void> {
    hashes.forget(id)
    const ending = endings.get(id)
    endings.delete(id)
    await ending?.tail?.discard()
  }

  /** Stores the bytes of the chunk in parts; what is shorter than a part stays in `part`. */
  async function receive(upload: PartialUpload, { offset, source, limit, isAtomic }: PartialChunk) {
    const { parts: earlier } = await recorded(upload.id)
    let inPieces = offset - sizeOf(earlier)
    if (inPieces < 0) throw conflict()
    const sent: SentPart[] = []
    const number = () => earlier.length + sent.length + 1
    const nextPart = () => memory.create(partLength(number()) - inPieces)
    const hash = hashes.take(upload.id, offset)
    let part = nextPart()
    let size = offset
    let failure: unknown = null

    async function add(bytes: Uint8Array): Promise<void> {
      for (let done = 0; done < bytes.byteLength; ) {
        const some = bytes.subarray(done, done + part.room)
        await part.append(some)
        done += some.byteLength
        // At once, because the catalog stores what is not sent when the chunk ends.
        if (part.room > 0) continue
        sent.push(await sendPart(upload, number(), part, inPieces))
        inPieces = 0
        part = nextPart()
      }
    }

    try {
      const chunks = source[Symbol.asyncIterator]()
      try {
        for (;;) {
          const next = await chunks.next().catch((error: unknown) => {
            failure = error
            return { done: true, value: undefined } as const
          })
          if (next.done || next.value === undefined) break
          const { value } = next
          if (size + value.byteLength > offset + limit)
            throw new Fault('file-too-large', `No more than ${limit} bytes are expected here.`)
          hash?.update(value)
          await add(value)
          size += value.byteLength
        }
      } finally {
        chunks.return?.()?.catch(() => undefined)
      }
    } catch (error) {
      await part.discard()
      const fault = faultOf(error)
      throw fault instanceof PartialUploadLost && (await isObject(upload)) ? conflict() : fault
    }
    if (failure !== null && isAtomic) {
      await part.discard()
      return { size: offset, failure, sent: [], part: null }
    }
    if (hash) hashes.store(upload.id, size, hash)
    return { size, failure, sent, part }
  }

  async function isObject(upload: PartialUpload): Promise<boolean> {
    const size = await calls.head(keyOf(upload))
    return size !== null && size === (upload.length ?? size)
  }

  /** Whether the object exists: an earlier attempt completed the upload, and its item was not added. */
  async function isCompleted(upload: PartialUpload): Promise<boolean> {
    if (upload.length === null || (await recorded(upload.id)).multipart === null) return false
    return await isObject(upload)
  }

  /** Compares a chunk with the bytes of a completed object. */
  async function compare(
    upload: PartialUpload,
    { offset, source }: PartialChunk,
  ): Promise<{ size: number; failure: unknown }> {
    let size = offset
    try {
      for await (const bytes of source) {
        const stored = Buffer.alloc(bytes.byteLength)
        if (size + bytes.byteLength > (upload.length ?? 0))
          throw new Fault('file-too-large', 'No more bytes are expected here.')
        if (bytes.byteLength > 0) await readRange(calls, keyOf(upload), size, stored)
        if (!stored.equals(bytes)) throw lost('the bytes differ from those that were sent before')
        size += bytes.byteLength
      }
    } catch (error) {
      if (error instanceof PartialUploadLost || error instanceof Fault) throw error
      return { size, failure: error }
    }
    return { size, failure: null }
  }

  async function move(
    id: UploadId,
    added: Parameters<PartLog['store']>[1],
    { offset, expiresAt }: PartialChunk,
    to: number,
  ) {
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

  /** Completes the multipart upload. False if another process has completed it, perhaps with other bytes. */
  async function completeParts(
    upload: Pick<PartialUpload, 'id' | 'mediaId'>,
    { size, parts: sent, tail }: Ending,
  ): Promise<boolean> {
    if (tail === null) return false
    const key = keyOf(upload)
    const { parts: earlier } = await recorded(upload.id)
    const before = [...earlier, ...sent]
    const inPieces = size - tail.size - sizeOf(before)
    // The first part that was sent contains the pieces.
    if (inPieces < 0 || (sent.length > 0 && inPieces > 0)) throw conflict()
    try {
      const isLonger = inPieces + tail.size > 0
      const last = isLonger ? [await sendPart(upload, before.length + 1, tail, inPieces)] : []
      await calls.complete(key, await begin(upload), [...before, ...last])
      return true
    } catch (error) {
      if ((await calls.head(key)) === size) return false
      throw error
    }
  }

  async function abortOthers(key: string): Promise<void> {
    for await (const found of calls.multipartUploads(key)) await calls.abort(found.key, found.upload)
  }

  return {
    async append(upload, chunk) {
      await forgetEnding(upload.id)
      if (await isCompleted(upload)) {
        const { size, failure } = await compare(upload, chunk)
        if (failure !== null && chunk.isAtomic) return { size: chunk.offset, failure, isRecorded: true }
        const isEnd = size === upload.length
        if (isEnd) endings.set(upload.id, { size, parts: [], tail: null })
        else await move(upload.id, { parts: [], piece: new Uint8Array(0) }, chunk, size)
        return { size, failure, isRecorded: !isEnd }
      }
      const { size, failure, sent, part } = await receive(upload, chunk)
      if (part === null) return { size, failure, isRecorded: true }
      if (size === upload.length) {
        endings.set(upload.id, { size, parts: sent, tail: part })
        return { size, failure, isRecorded: false }
      }
      const piece = await part.take()
      if (size > chunk.offset) await move(upload.id, { parts: sent, piece }, chunk, size)
      return { size, failure, isRecorded: true }
    },

    async complete(id, size, mediaId) {
      const ending = endings.get(id)
      endings.delete(id)
      if (ending?.size !== size) {
        await ending?.tail?.discard()
        throw lost('the end of a partial upload is missing')
      }
      const key = keyOf({ mediaId })
      try {
        if (size === 0) {
          await recordIntent(mediaId)
          await calls.put(key, new Uint8Array(0), createHash('sha256').digest())
        } else {
          const isOwn = await completeParts({ id, mediaId }, ending)
          if (!isOwn) hashes.forget(id)
          await abortOthers(key).catch(() => undefined)
        }
        const sha256 = await hashes.digest(id, size, () => hashObject(key, size))
        const head = Buffer.alloc(Math.min(size, headLength))
        await readRange(calls, key, 0, head)
        const blob = { id: mediaId, handle: key, size, sha256, head }
        parts.onComplete(blob)
        return blob
      } catch (error) {
        throw faultOf(error)
      } finally {
        await ending.tail?.discard()
      }
    },

    async read(id, size) {
      const ending = endings.get(id)
      endings.delete(id)
      if (ending?.size !== size || ending.tail === null) throw lost('the end of a partial upload is missing')
      const tail = await ending.tail.take()
      const pieces = [...(await log.pieces(id)), tail]
      hashes.forget(id)
      if (lengthOf(pieces) !== size) throw conflict()
      const bytes = new Uint8Array(size)
      let at = 0
      for (const piece of pieces) {
        bytes.set(piece, at)
        at += piece.byteLength
      }
      return bytes
    },

    // A completed multipart upload stays an object: the next chunk is compared with it.
    reclaim: async () => undefined,

    // The catalog has removed its records. A sweep of the intent aborts the multipart upload.
    remove: forget,
  }

  async function forgetEnding(id: UploadId): Promise<void> {
    const ending = endings.get(id)
    endings.delete(id)
    await ending?.tail?.discard()
  }
}

const lost = (why: string) => new PartialUploadLost(why)

const conflict = () =>
  new Fault('upload-offset-conflict', 'Another request has changed the upload; send HEAD for its offset.')

const sizeOf = (parts: readonly SentPart[]) => parts.reduce((sum, { size }) => sum + size, 0)

const lengthOf = (pieces: readonly Uint8Array[]) =>
  pieces.reduce((sum, { byteLength }) => sum + byteLength, 0)

/** The store does not have the multipart upload, or not the recorded parts of it. */
const isGone = (error: unknown): boolean =>
  error instanceof Fault &&
  error.cause instanceof StoreError &&
  ['NoSuchUpload', 'InvalidPart', 'InvalidPartOrder'].includes(error.cause.reason)

/** The fault of a request to the store. If parts are gone, the upload is lost. */
function faultOf(error: unknown): unknown {
  const fault = error instanceof UncertainOutcome ? error.cause : error
  return isGone(fault) ? lost('the store does not have the recorded parts of the upload') : fault
}
