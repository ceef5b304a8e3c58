import { createHash, webcrypto } from 'node:crypto'
import { chunkTooLarge, Fault } from '../../../core/faults.ts'
import type { ItemId, UploadId } from '../../../core/ids.ts'
import {
  type Appended,
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
export class S3PartialUploads implements PartialUploadStore {
  readonly #parts: S3PartialParts
  readonly #hashes = new PartialUploadHashes()
  readonly #completions = new PendingCompletions()
  readonly #uploadParts: UploadParts

  constructor(parts: S3PartialParts) {
    this.#parts = parts
    this.#uploadParts = new UploadParts(parts)
  }

  async append(upload: PartialUpload, chunk: PartialChunk): Promise<Appended> {
    await this.#completions.remove(upload.id)
    if (await this.#isCompleted(upload)) return await this.#repeat(upload, chunk)
    const { size, failure, sent, part } = await this.#receive(upload, chunk)
    if (part === null) return { size, failure, isRecorded: true }
    if (size === upload.length) {
      this.#completions.add(upload.id, { size, parts: sent, tail: part })
      return { size, failure, isRecorded: false }
    }
    const piece = await part.take()
    if (size > chunk.offset) await this.#move(upload.id, { parts: sent, piece }, chunk, size)
    return { size, failure, isRecorded: true }
  }

  async complete(id: UploadId, size: number, itemId: ItemId): Promise<ReceivedBlob> {
    const { calls, onComplete } = this.#parts
    const completion = await this.#takeCompletion(id, size)
    const key = this.#uploadParts.keyOf({ itemId })
    try {
      if (size === 0) {
        await this.#uploadParts.recordIntent(itemId)
        await calls.put(key, new Uint8Array(0), createHash('sha256').digest())
      } else {
        const isOwn = await completeParts(
          { uploadParts: this.#uploadParts, calls },
          { id, itemId },
          completion,
        )
        if (!isOwn) this.#hashes.forget(id)
        await this.#abortOthers(key).catch(() => undefined)
      }
      const sha256 = await this.#hashes.digest(id, size, () => this.#hashObject(key, size))
      const head = Buffer.alloc(Math.min(size, headLength))
      await readRange(calls, key, 0, head)
      const blob = { id: itemId, handle: key, size, sha256, head }
      onComplete(blob)
      return blob
    } catch (error) {
      throw faultOf(error)
    } finally {
      await completion.tail?.discard()
    }
  }

  async read(id: UploadId, size: number): Promise<Uint8Array<ArrayBuffer>> {
    const { tail } = await this.#takeCompletion(id, size)
    if (tail === null) throw lost('the end of a partial upload is missing')
    const pieces = [...(await this.#parts.log.pieces(id)), await tail.take()]
    this.#hashes.forget(id)
    if (lengthOf(pieces) !== size) throw conflict()
    return new Uint8Array(Buffer.concat(pieces, size))
  }

  /** A completed multipart upload stays an object: the next chunk is compared with it. */
  async reclaim(): Promise<void> {}

  /** The catalog has removed its records. A sweep of the intent aborts the multipart upload. */
  async remove(id: UploadId): Promise<void> {
    this.#hashes.forget(id)
    await this.#completions.remove(id)
  }

  /** Compares the chunk with the object that an earlier attempt completed. */
  async #repeat(upload: PartialUpload, chunk: PartialChunk): Promise<Appended> {
    const object = { key: this.#uploadParts.keyOf(upload), length: upload.length ?? 0 }
    const { size, failure } = await compareChunk(this.#parts.calls, object, chunk)
    if (failure !== null && chunk.isAtomic) return { size: chunk.offset, failure, isRecorded: true }
    const isEnd = size === upload.length
    if (isEnd) this.#completions.add(upload.id, { size, parts: [], tail: null })
    else await this.#move(upload.id, { parts: [], piece: new Uint8Array(0) }, chunk, size)
    return { size, failure, isRecorded: !isEnd }
  }

  /** Sends the bytes of the chunk in parts. */
  async #receive(
    upload: PartialUpload,
    { offset, source, limit, isAtomic }: PartialChunk,
  ): Promise<ReceivedChunk> {
    const earlier = (await this.#uploadParts.recorded(upload.id)).parts
    const pieceBytes = offset - sizeOf(earlier)
    if (pieceBytes < 0) throw conflict()
    const sender = new PartSender({
      ...{ upload, pieceBytes, earlier: earlier.length },
      ...{ uploadParts: this.#uploadParts, memory: this.#parts.memory },
    })
    const hash = this.#hashes.take(upload.id, offset)
    let size = offset
    let failure: unknown = null

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
          await sender.add(value)
          size += value.byteLength
        }
      } finally {
        chunks.return?.()?.catch(() => undefined)
      }
    } catch (error) {
      await sender.part.discard()
      const fault = faultOf(error)
      throw fault instanceof PartialUploadLost && (await this.#isObject(upload)) ? conflict() : fault
    }
    if (failure !== null && isAtomic) {
      await sender.part.discard()
      return { size: offset, failure, sent: [], part: null }
    }
    if (hash) this.#hashes.store(upload.id, size, hash)
    return { size, failure, sent: sender.sent, part: sender.part }
  }

  /** Whether the object exists: an earlier attempt completed the upload, and its item was not added. */
  async #isCompleted(upload: PartialUpload): Promise<boolean> {
    if (upload.length === null) return false
    if ((await this.#uploadParts.recorded(upload.id)).multipart === null) return false
    return await this.#isObject(upload)
  }

  async #isObject(upload: PartialUpload): Promise<boolean> {
    const size = await this.#parts.calls.head(this.#uploadParts.keyOf(upload))
    return size !== null && size === (upload.length ?? size)
  }

  /** Records the bytes up to `to`. */
  async #move(
    id: UploadId,
    added: Parameters<PartLog['store']>[1],
    { offset, expiresAt }: PartialChunk,
    to: number,
  ): Promise<void> {
    if (await this.#parts.log.store(id, added, { from: offset, to, expiresAt: expiresAt() })) return
    // Another process may have stored other bytes up to the same offset.
    this.#hashes.forget(id)
    throw conflict()
  }

  async #hashObject(key: string, size: number): Promise<Uint8Array> {
    const hash = createHash('sha256')
    for await (const bytes of readObject(this.#parts.calls, key, 0, size - 1)) hash.update(bytes)
    return hash.digest()
  }

  async #abortOthers(key: string): Promise<void> {
    const { calls } = this.#parts
    for await (const found of calls.multipartUploads(key)) await calls.abort(found.key, found.upload)
  }

  async #takeCompletion(id: UploadId, size: number): Promise<PendingCompletion> {
    const completion = await this.#completions.take(id, size)
    if (completion === null) throw lost('the end of a partial upload is missing')
    return completion
  }
}

interface S3PartialParts {
  readonly calls: ObjectCalls
  readonly memory: Pick<PartMemory, 'create'>
  readonly intents: HeldIntents
  readonly log: PartLog
  readonly prefix: string
  /** Called with each blob that another process may also be turning into the same item. */
  readonly onComplete: (blob: ReceivedBlob) => void
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

/** Collects the bytes of a chunk, and sends each part when it is full. */
class PartSender {
  readonly #parts: SenderParts
  readonly #sent: SentPart[] = []
  /** Bytes of recorded pieces that the next part begins with. */
  #pieceBytes: number
  #part: Part

  constructor(parts: SenderParts) {
    this.#parts = parts
    this.#pieceBytes = parts.pieceBytes
    this.#part = this.#newPart()
  }

  get sent(): readonly SentPart[] {
    return this.#sent
  }

  /** The bytes after the sent parts. */
  get part(): Part {
    return this.#part
  }

  async add(bytes: Uint8Array): Promise<void> {
    const { uploadParts, upload } = this.#parts
    for (let done = 0; done < bytes.byteLength; ) {
      const some = bytes.subarray(done, done + this.#part.room)
      await this.#part.append(some)
      done += some.byteLength
      // At once, because the catalog stores what is not sent when the chunk ends.
      if (this.#part.room > 0) continue
      this.#sent.push(await uploadParts.send(upload, this.#number(), this.#part, this.#pieceBytes))
      this.#pieceBytes = 0
      this.#part = this.#newPart()
    }
  }

  #newPart(): Part {
    return this.#parts.memory.create(partLength(this.#number()) - this.#pieceBytes)
  }

  /** The number of the part that is collected. */
  #number(): number {
    return this.#parts.earlier + this.#sent.length + 1
  }
}

interface SenderParts {
  readonly upload: PartialUpload
  readonly pieceBytes: number
  /** How many parts are recorded. */
  readonly earlier: number
  readonly uploadParts: UploadParts
  readonly memory: Pick<PartMemory, 'create'>
}

type SentPart = RecordedParts['parts'][number]

type UploadIds = Pick<PartialUpload, 'id' | 'itemId'>

/** The multipart uploads of partial uploads, and their parts. The methods throw Fault `upload-offset-conflict`. */
class UploadParts {
  readonly #parts: UploadPartsParts

  constructor(parts: UploadPartsParts) {
    this.#parts = parts
  }

  keyOf({ itemId }: Pick<PartialUpload, 'itemId'>): string {
    return blobKey(this.#parts.prefix, itemId)
  }

  async recorded(id: UploadId): Promise<RecordedParts> {
    const found = await this.#parts.log.read(id)
    // Another process has finished or removed it.
    if (found === null) throw conflict()
    return found
  }

  /** While the upload is not finished, the sweep does not take the intent, so its deadline needs no extension. */
  async recordIntent(itemId: ItemId): Promise<void> {
    await this.#parts.intents.hold(itemId)
    this.#parts.intents.release([itemId])
  }

  /**
   * The id of the multipart upload, which is created if none is recorded. The intent is recorded before, and a sweep aborts one that no
   * upload names.
   */
  async begin({ id, itemId }: UploadIds): Promise<string> {
    const { calls, log } = this.#parts
    const known = (await this.recorded(id)).multipart
    if (known !== null) return known
    await this.recordIntent(itemId)
    const key = this.keyOf({ itemId })
    const created = await calls.createMultipart(key)
    const used = await log.begin(id, created)
    if (used !== created) await calls.abort(key, created)
    if (used === null) throw conflict()
    return used
  }

  /** Sends the part with this number: `pieceBytes` bytes of recorded pieces, then its own bytes. Frees the part. */
  async send(upload: UploadIds, number: number, part: Part, pieceBytes: number): Promise<SentPart> {
    const { calls, log } = this.#parts
    const multipart = await this.begin(upload)
    // The pieces are read when it is the turn of the part, so that few are in memory at once.
    return await part.send(async (own) => {
      const pieces = pieceBytes > 0 ? await log.pieces(upload.id) : []
      if (lengthOf(pieces) !== pieceBytes) throw conflict()
      const bytes = pieceBytes > 0 ? Buffer.concat([...pieces, own]) : own
      const sha256 = new Uint8Array(await webcrypto.subtle.digest('SHA-256', bytes))
      const { etag } = await calls.putPart(
        { key: this.keyOf(upload), upload: multipart, number },
        { bytes, sha256 },
      )
      return { number, size: bytes.byteLength, etag }
    })
  }
}

interface UploadPartsParts {
  readonly calls: Pick<ObjectCalls, 'createMultipart' | 'abort' | 'putPart'>
  readonly intents: HeldIntents
  readonly log: PartLog
  readonly prefix: string
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
class PendingCompletions {
  readonly #completions = new Map<UploadId, PendingCompletion>()

  add(id: UploadId, completion: PendingCompletion): void {
    this.#completions.set(id, completion)
  }

  /** Removes the completion and returns it; the caller frees its tail. If the upload does not have `size` bytes, frees the tail and returns null. */
  async take(id: UploadId, size: number): Promise<PendingCompletion | null> {
    const completion = this.#completions.get(id)
    if (completion?.size === size) {
      this.#completions.delete(id)
      return completion
    }
    await this.remove(id)
    return null
  }

  async remove(id: UploadId): Promise<void> {
    const completion = this.#completions.get(id)
    this.#completions.delete(id)
    await completion?.tail?.discard()
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
