import { createHash, webcrypto } from 'node:crypto'
import { type FileHandle, mkdtemp, open, rmdir, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileTooLarge } from '../../../core/faults.ts'
import type { ItemId } from '../../../core/ids.ts'
import { headLength, type IntentLog } from '../blobs.ts'
import type { ReceivedBlob } from '../received-file.ts'
import { asTemporaryFault, StoreError } from './errors.ts'
import { type ObjectCalls, type PartPlace, type StoredPart, UncertainOutcome } from './object-calls.ts'

/** Parts of one upload that are sent at the same time. */
const maxParallel = 3

interface ReceiveParts {
  readonly calls: Pick<
    ObjectCalls,
    'put' | 'head' | 'remove' | 'createMultipart' | 'putPart' | 'complete' | 'abort'
  >
  readonly memory: Pick<PartMemory, 'create'>
  readonly intents: HeldIntents
}

/**
 * Stores the bytes of the source under the key: in one request if they fit into one part, otherwise in parts. The intent is recorded
 * before the first byte is sent. As `BlobStore.receive`.
 */
export function receiveObject(
  parts: ReceiveParts,
  object: ObjectName,
  source: AsyncIterable<Uint8Array>,
  limit: number,
): Promise<ReceivedBlob> {
  return new ObjectUpload(parts, object).receive(source, limit)
}

interface ObjectName {
  readonly id: ItemId
  readonly key: string
}

/** One object, while its bytes arrive and are sent. */
class ObjectUpload {
  readonly #parts: ReceiveParts
  readonly #object: ObjectName
  /** The bytes so far. */
  #size = 0
  /** The part that is being received, and its number. */
  #part: Part
  #number = 1
  /** The multipart upload; null while the bytes fit into one part. */
  #upload: string | null = null
  /** Whether the intent is recorded, and whether a request may be executed after its failure. */
  #isHeld = false
  #isUncertain = false
  readonly #abort = new AbortController()
  readonly #sends: Promise<StoredPart>[] = []
  readonly #running = new Set<Promise<StoredPart>>()

  constructor(parts: ReceiveParts, object: ObjectName) {
    this.#parts = parts
    this.#object = object
    this.#part = parts.memory.create(partLength(this.#number))
  }

  async receive(source: AsyncIterable<Uint8Array>, limit: number): Promise<ReceivedBlob> {
    const { id, key } = this.#object
    const hash = createHash('sha256')
    const head: Uint8Array[] = []
    let missing = headLength
    try {
      for await (const chunk of source) {
        this.#size += chunk.byteLength
        if (this.#size > limit) throw fileTooLarge(limit)
        hash.update(chunk)
        if (missing > 0 && chunk.byteLength > 0) {
          // A copy: a view would keep the whole chunk in memory.
          head.push(new Uint8Array(chunk.subarray(0, missing)))
          missing -= Math.min(missing, chunk.byteLength)
        }
        await this.#add(chunk)
      }
      const sha256 = hash.digest()
      await this.#finish(sha256)
      return { id, handle: key, size: this.#size, sha256, head: Buffer.concat(head) }
    } catch (error) {
      this.#isUncertain ||= error instanceof UncertainOutcome
      await this.#clean()
      throw error instanceof UncertainOutcome ? error.cause : error
    }
  }

  async #add(chunk: Uint8Array): Promise<void> {
    for (let done = 0; done < chunk.byteLength; ) {
      if (this.#part.room === 0) await this.#flush()
      const some = chunk.subarray(done, done + this.#part.room)
      await this.#part.append(some)
      done += some.byteLength
    }
  }

  /** Starts to send the part, and waits while too many are being sent. */
  async #flush(): Promise<void> {
    const upload = this.#upload ?? (await this.#begin())
    const sent = this.#sendPart(this.#part, { key: this.#object.key, upload, number: this.#number })
    this.#sends.push(sent)
    this.#running.add(sent)
    sent.then(
      () => this.#running.delete(sent),
      () => undefined,
    )
    this.#number += 1
    this.#part = this.#parts.memory.create(partLength(this.#number))
    // A failed one rejects here.
    while (this.#running.size >= maxParallel) await Promise.race(this.#running)
  }

  async #begin(): Promise<string> {
    await this.#hold()
    this.#upload = await this.#parts.calls.createMultipart(this.#object.key)
    return this.#upload
  }

  async #hold(): Promise<void> {
    await this.#parts.intents.hold(this.#object.id)
    this.#isHeld = true
  }

  async #sendPart(part: Part, place: PartPlace): Promise<StoredPart> {
    return await part.send(async (bytes) => {
      this.#abort.signal.throwIfAborted()
      const sha256 = new Uint8Array(await webcrypto.subtle.digest('SHA-256', bytes))
      return await this.#parts.calls.putPart(place, { bytes, sha256 }, this.#abort.signal)
    })
  }

  async #finish(sha256: Uint8Array): Promise<void> {
    if (this.#upload !== null) {
      await this.#flush()
      return await this.#complete(this.#upload, await Promise.all(this.#sends))
    }
    await this.#hold()
    await this.#part.send((bytes) => this.#parts.calls.put(this.#object.key, bytes, sha256))
  }

  /** If the response is lost, the size of the object shows the success: nobody else stores bytes under the key. */
  async #complete(upload: string, stored: readonly StoredPart[]): Promise<void> {
    const { calls } = this.#parts
    const { key } = this.#object
    const failure = await calls.complete(key, upload, stored).then(
      () => null,
      (error: unknown) => ({ error }),
    )
    const found = await calls.head(key)
    if (found === this.#size) return
    throw failure?.error ?? new StoreError(`an object of ${this.#size} bytes has ${found} bytes in the store`)
  }

  /** Removes what was sent. The intent stays if a request may still be executed. */
  async #clean(): Promise<void> {
    const { calls, intents } = this.#parts
    const { id, key } = this.#object
    // First nothing more is sent, and what is being sent ends.
    this.#abort.abort()
    await this.#part.discard().catch(() => undefined)
    for (const result of await Promise.allSettled(this.#sends))
      if (result.status === 'rejected' && result.reason instanceof UncertainOutcome) this.#isUncertain = true
    if (!this.#isHeld) return
    try {
      if (this.#upload !== null) await calls.abort(key, this.#upload)
      await calls.remove(key)
      if (!this.#isUncertain) return await intents.clear([id])
    } catch {
      // A sweep removes the rest.
    }
    intents.release([id])
  }
}

/** Bytes of a part of an upload. S3 allows parts of at least 5 MiB, and 10,000 parts. */
const firstLength = 8 * 1024 * 1024

/** Parts of one length. Every further thousand is twice as long, so that the largest objects have few enough parts. */
const partsPerLength = 1_000

/** The length of the part with this number, from 1. */
export const partLength = (number: number): number =>
  firstLength * 2 ** Math.floor((number - 1) / partsPerLength)

/** Lengths of buffers for a part that grows. */
const growth = [256 * 1024, 1024 * 1024]

/** Bytes of parts in memory, of all uploads together. Parts beyond it are collected in temporary files. */
const memoryLimit = 64 * 1024 * 1024

/** Parts that are sent at the same time. */
const maxSends = 8

/** Unused buffers of the first length that stay allocated. */
const maxSpare = 4

/** Bytes of one part, as they are received. */
export interface Part {
  readonly size: number
  /** Bytes that the part can still take. */
  readonly room: number
  /** Copies the bytes, which must not exceed the room. Throws Fault `overloaded` if there is no space for temporary files. */
  append(bytes: Uint8Array): Promise<void>
  /** Waits for its turn, then calls `send` with all bytes, which are valid until it resolves. Frees the part. */
  send<T>(send: (bytes: Uint8Array<ArrayBuffer>) => Promise<T>): Promise<T>
  /** Returns a copy of the bytes, and frees the part. */
  take(): Promise<Uint8Array<ArrayBuffer>>
  /** Frees the part. */
  discard(): Promise<void>
}

/** The memory for parts of uploads. A slow upload never keeps others waiting: without memory, its part is collected in a file. */
export class PartMemory {
  readonly #limit: number
  #used = 0
  /** Parts that are being sent, and those that wait for it. */
  #sending = 0
  readonly #waiting: (() => void)[] = []
  /** Unused buffers of the first length. */
  readonly #spare: Buffer<ArrayBuffer>[] = []

  constructor(limit = memoryLimit) {
    this.#limit = limit
  }

  /** A part of at most `length` bytes. */
  create(length: number): Part {
    return new GrowingPart(this, length)
  }

  /** Runs the work when few enough parts are being sent. */
  async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#sending < maxSends) this.#sending += 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      // The next one takes over the place.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#sending -= 1
    }
  }

  /** Null if there is not enough memory. */
  allocate(length: number): Buffer<ArrayBuffer> | null {
    if (this.#used + length > this.#limit) return null
    this.#used += length
    return (length === firstLength && this.#spare.pop()) || Buffer.allocUnsafeSlow(length)
  }

  free(buffer: Buffer<ArrayBuffer>): void {
    this.#used -= buffer.length
    if (buffer.length === firstLength && this.#spare.length < maxSpare) this.#spare.push(buffer)
  }
}

/** A part in a buffer that is replaced by larger ones, or in a file if there is no memory. */
class GrowingPart implements Part {
  readonly #memory: PartMemory
  readonly #length: number
  #buffer: Buffer<ArrayBuffer> | null = null
  #file: FileHandle | null = null
  #size = 0

  constructor(memory: PartMemory, length: number) {
    this.#memory = memory
    this.#length = length
  }

  get size(): number {
    return this.#size
  }

  get room(): number {
    return this.#length - this.#size
  }

  async append(bytes: Uint8Array): Promise<void> {
    const buffer = this.#file === null ? this.#grow(this.#size + bytes.byteLength) : null
    if (buffer !== null) buffer.set(bytes, this.#size)
    else await this.#write(bytes)
    this.#size += bytes.byteLength
  }

  async send<T>(send: (bytes: Uint8Array<ArrayBuffer>) => Promise<T>): Promise<T> {
    return await this.#memory.inTurn(async () => {
      try {
        return await send(await this.#bytes())
      } finally {
        await this.discard()
      }
    })
  }

  async take(): Promise<Uint8Array<ArrayBuffer>> {
    const taken = (await this.#bytes()).slice()
    await this.discard()
    return taken
  }

  async discard(): Promise<void> {
    if (this.#buffer !== null) this.#memory.free(this.#buffer)
    this.#buffer = null
    this.#size = 0
    await this.#file?.close()
    this.#file = null
  }

  /** Null if there is not enough memory. */
  #grow(needed: number): Buffer<ArrayBuffer> | null {
    const buffer = this.#buffer
    if (buffer !== null && needed <= buffer.length) return buffer
    const length = growth.find((step) => step >= needed && step < this.#length) ?? this.#length
    const larger = this.#memory.allocate(length)
    if (larger === null) return null
    if (buffer !== null) {
      buffer.copy(larger, 0, 0, this.#size)
      this.#memory.free(buffer)
    }
    this.#buffer = larger
    return larger
  }

  async #write(bytes: Uint8Array): Promise<void> {
    try {
      await writeWhole(this.#file ?? (await this.#spill()), bytes, this.#size)
    } catch (error) {
      throw asTemporaryFault(error)
    }
  }

  /** Moves the bytes to a file. */
  async #spill(): Promise<FileHandle> {
    const created = await createUnnamedFile()
    this.#file = created
    if (this.#buffer !== null) {
      await writeWhole(created, this.#buffer.subarray(0, this.#size), 0)
      this.#memory.free(this.#buffer)
      this.#buffer = null
    }
    return created
  }

  async #bytes(): Promise<Uint8Array<ArrayBuffer>> {
    const [file, size] = [this.#file, this.#size]
    if (file === null) return this.#buffer?.subarray(0, size) ?? new Uint8Array(0)
    const read = Buffer.allocUnsafeSlow(size)
    for (let done = 0; done < size; ) {
      const { bytesRead } = await file.read(read, done, size - done, done)
      if (bytesRead === 0) throw new Error('a temporary file ended before its size')
      done += bytesRead
    }
    return read
  }
}

/** A file that the system removes when it is closed, also after a crash. */
async function createUnnamedFile(): Promise<FileHandle> {
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-part-'))
  const path = join(directory, 'part')
  try {
    const file = await open(path, 'wx+', 0o600)
    await unlink(path)
    return file
  } finally {
    await rmdir(directory)
  }
}

async function writeWhole(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.byteLength; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done, position + done)
    done += bytesWritten
  }
}

/** Milliseconds between extensions of the deadlines: less than the time between two sweeps (items/blob-deletion.ts). */
const extensionInterval = 300_000

/** The intents of blobs that are being received, or are received and not committed. Their deadlines are extended. */
export class HeldIntents {
  readonly #log: IntentLog
  readonly #held = new Set<ItemId>()
  readonly #timer: NodeJS.Timeout

  constructor(log: IntentLog) {
    this.#log = log
    this.#timer = setInterval(() => this.#extend(), extensionInterval).unref()
  }

  /** Durable when it resolves. */
  async hold(id: ItemId): Promise<void> {
    await this.#log.record([id])
    this.#held.add(id)
  }

  /** The intents stay recorded, until an item has the id or a sweep takes them. */
  release(ids: readonly ItemId[]): void {
    for (const id of ids) this.#held.delete(id)
  }

  /** Also removes the intents. If that fails, a sweep takes them. Call it when nothing can be stored under the ids any more. */
  async clear(ids: readonly ItemId[]): Promise<void> {
    this.release(ids)
    if (ids.length > 0) await this.#log.clear(ids).catch(() => undefined)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #extend(): void {
    // If it fails, the next extension is soon enough: deadlines are several intervals away.
    if (this.#held.size > 0) this.#log.record([...this.#held]).catch(() => undefined)
  }
}
