import { createHash, webcrypto } from 'node:crypto'
import { chunkTooLarge, Fault } from '../../../core/faults.ts'
import type { ItemId, UploadId } from '../../../core/ids.ts'
import {
  headLength,
  type PartialChunk,
  type PartialUpload,
  PartialUploadHashes,
  PartialUploadLost,
  type PartialUploadStore,
  type PartLog,
  type RecordedParts,
} from '../blobs.ts'
import type { ReceivedBlob } from '../received-file.ts'
import { StoreError } from './errors.ts'
import { blobKey, type ObjectCalls, UncertainOutcome } from './object-calls.ts'
import { readObject, readRange } from './object-reads.ts'
import { type HeldIntents, type Part, type PartMemory, partLength } from './object-uploads.ts'

/**
 * Stores partial uploads as multipart uploads, which the catalog records. Bytes that are too few for a part are stored in the catalog.
 * The number of a part is its position, because Ceph completes a multipart upload only if all parts that were sent are listed: a part of a
 * process that was killed is sent again with the same bytes. Two processes that write at the same offset send equal parts, or the upload
 * is lost: the store compares the parts with their recorded tags. A multipart upload can be completed only once. So processes need no
 * lock: the offset in the catalog shows which of them has stored its bytes.
 */
export function createS3PartialUploads(parts: {
  readonly calls: ObjectCalls
  readonly memory: Pick<PartMemory, 'create'>
  readonly intents: HeldIntents
  readonly log: PartLog
  readonly prefix: string
  /** Called with each blob that another process may also be turning into the same item. */
  readonly onComplete: (blob: ReceivedBlob) => void
}): PartialUploadStore {
  const { calls, memory, log } = parts
  const hashes = new PartialUploadHashes()
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
    if (await log.store(id, added, { from: offset, to, expiresAt: expiresAt() })) return
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

interface ReceivedChunk {
  /** Bytes of the upload now. */
  readonly size: number
  /** The error of the source; null if it has ended. */
  readonly failure: unknown
  /** Sent, not recorded. */
  readonly sent: readonly SentPart[]
  /** The bytes after the sent parts, fewer than a part; null if none of the source counts. */
  readonly part: Part | null
}

/** Sends the bytes of the chunk in parts. */
async function receiveChunk(
  {
    uploadParts,
    memory,
    hashes,
    isObject,
  }: {
    readonly uploadParts: Pick<UploadParts, 'recorded' | 'send'>
    readonly memory: Pick<PartMemory, 'create'>
    readonly hashes: PartialUploadHashes
    /** Whether the upload is a complete object. */
    readonly isObject: (upload: PartialUpload) => Promise<boolean>
  },
  upload: PartialUpload,
  { offset, source, limit, isAtomic }: PartialChunk,
): Promise<ReceivedChunk> {
  const { parts: earlier } = await uploadParts.recorded(upload.id)
  let pieceBytes = offset - sizeOf(earlier)
  if (pieceBytes < 0) throw conflict()
  const sent: SentPart[] = []
  const number = () => earlier.length + sent.length + 1
  const nextPart = () => memory.create(partLength(number()) - pieceBytes)
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
      sent.push(await uploadParts.send(upload, number(), part, pieceBytes))
      pieceBytes = 0
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
        if (size + value.byteLength > offset + limit) throw chunkTooLarge(limit)
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

type SentPart = RecordedParts['parts'][number]

type UploadIds = Pick<PartialUpload, 'id' | 'itemId'>

/** The multipart uploads of partial uploads, and their parts. The methods throw Fault `upload-offset-conflict`. */
interface UploadParts {
  keyOf(upload: Pick<PartialUpload, 'itemId'>): string
  recorded(id: UploadId): Promise<RecordedParts>
  recordIntent(itemId: ItemId): Promise<void>
  /** The id of the multipart upload, which is created if none is recorded. */
  begin(upload: UploadIds): Promise<string>
  /** Sends the part with this number: `pieceBytes` bytes of recorded pieces, then its own bytes. Frees the part. */
  send(upload: UploadIds, number: number, part: Part, pieceBytes: number): Promise<SentPart>
}

function createUploadParts({
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
        const { etag } = await calls.putPart(
          { key: keyOf(upload), upload: multipart, number },
          { bytes, sha256 },
        )
        return { number, size: bytes.byteLength, etag }
      })
    },
  }
}

const sizeOf = (parts: readonly SentPart[]) => parts.reduce((sum, { size }) => sum + size, 0)

const lengthOf = (pieces: readonly Uint8Array[]) =>
  pieces.reduce((sum, { byteLength }) => sum + byteLength, 0)

/** An upload whose bytes have all arrived, until they become a blob or a small file. */
interface PendingCompletion {
  readonly size: number
  /** The parts that were sent and are not recorded in the catalog. */
  readonly parts: readonly SentPart[]
  /** Bytes after the parts and the recorded pieces; null if the object is complete already. */
  readonly tail: Part | null
}

/** The pending completions of this process. */
interface PendingCompletions {
  add(id: UploadId, completion: PendingCompletion): void
  /** Removes the completion and returns it; the caller frees its tail. If the upload does not have `size` bytes, frees the tail and returns null. */
  take(id: UploadId, size: number): Promise<PendingCompletion | null>
  remove(id: UploadId): Promise<void>
}

function createPendingCompletions(): PendingCompletions {
  const completions = new Map<UploadId, PendingCompletion>()

  async function remove(id: UploadId): Promise<void> {
    const completion = completions.get(id)
    completions.delete(id)
    await completion?.tail?.discard()
  }

  return {
    add: (id, completion) => void completions.set(id, completion),
    async take(id, size) {
      const completion = completions.get(id)
      if (completion?.size === size) {
        completions.delete(id)
        return completion
      }
      await remove(id)
      return null
    },
    remove,
  }
}

/** Completes the object of an upload from its parts. False if another process has completed it, perhaps with other bytes. */
async function completeParts(
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

/** Compares a chunk with the bytes of the completed object of an upload. Throws PartialUploadLost if they differ. */
async function compareChunk(
  calls: Pick<ObjectCalls, 'get' | 'timeouts'>,
  object: { readonly key: string; readonly length: number },
  { offset, source }: PartialChunk,
): Promise<{ readonly size: number; readonly failure: unknown }> {
  let size = offset
  try {
    for await (const bytes of source) {
      const stored = Buffer.alloc(bytes.byteLength)
      if (size + bytes.byteLength > object.length) throw chunkTooLarge(Math.max(0, object.length - offset))
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

const lost = (why: string) => new PartialUploadLost(why)

const conflict = () =>
  new Fault('upload-offset-conflict', 'Another request has changed the upload; send HEAD for its offset.')

/** The store lacks the multipart upload, or some of its recorded parts. */
const isGone = (error: unknown): boolean =>
  error instanceof Fault &&
  error.cause instanceof StoreError &&
  ['NoSuchUpload', 'InvalidPart', 'InvalidPartOrder'].includes(error.cause.reason)

/** The fault of a request to the store. If parts are gone, the upload is lost. */
function faultOf(error: unknown): unknown {
  const fault = error instanceof UncertainOutcome ? error.cause : error
  return isGone(fault) ? lost('the store does not have the recorded parts of the upload') : fault
}
