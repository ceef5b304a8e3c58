import { createHash, webcrypto } from 'node:crypto'
import { type FileHandle, mkdtemp, open, rmdir, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileTooLarge } from '../../../core/faults.ts'
import type { ItemId } from '../../../core/ids.ts'
import { headLength, type IntentLog } from '../blobs.ts'
import type { ReceivedBlob } from '../received-file.ts'
import { asTemporaryFault, StoreError } from './errors.ts'
import { type ObjectCalls, type StoredPart, UncertainOutcome } from './object-calls.ts'

/** Parts of one upload that are sent at the same time. */
const maxParallel = 3

interface ReceiveParts {
  readonly calls: Pick<
    ObjectCalls,
    'put' | 'head' | 'remove' | 'createMultipart' | 'putPart' | 'complete' | 'abort'
  >
  readonly memory: PartMemory
  readonly intents: HeldIntents
}

/**
 * Stores the bytes of the source under the key: in one request if they fit into one part, otherwise in parts. The intent is recorded
 * before the first byte is sent. As `BlobStore.receive`.
 */
export async function receiveObject(
  { calls, memory, intents }: ReceiveParts,
  { id, key }: { readonly id: ItemId; readonly key: string },
  source: AsyncIterable<Uint8Array>,
  limit: number,
): Promise<ReceivedBlob> {
  const hash = createHash('sha256')
  const head: Uint8Array[] = []
  let [missing, size, number] = [headLength, 0, 1]
  let part = memory.create(partLength(number))
  let upload: string | null = null
  let [isHeld, isUncertain] = [false, false]
  const abort = new AbortController()
  const sends: Promise<StoredPart>[] = []
  const running = new Set<Promise<StoredPart>>()

  async function begin(): Promise<string> {
    await intents.hold(id)
    isHeld = true
    upload = await calls.createMultipart(key)
    return upload
  }

  async function sendPart(to: string, full: Part, at: number): Promise<StoredPart> {
    return await full.send(async (bytes) => {
      abort.signal.throwIfAborted()
      const sha256 = new Uint8Array(await webcrypto.subtle.digest('SHA-256', bytes))
      return await calls.putPart(key, to, at, { bytes, sha256 }, abort.signal)
    })
  }

  /** Starts to send the part, and waits while too many are being sent. */
  async function flush(): Promise<void> {
    const to = upload ?? (await begin())
    const sent = sendPart(to, part, number)
    sends.push(sent)
    running.add(sent)
    sent.then(
      () => running.delete(sent),
      () => undefined,
    )
    number += 1
    part = memory.create(partLength(number))
    // A failed one rejects here.
    while (running.size >= maxParallel) await Promise.race(running)
  }

  async function add(chunk: Uint8Array): Promise<void> {
    for (let done = 0; done < chunk.byteLength; ) {
      if (part.room === 0) await flush()
      const some = chunk.subarray(done, done + part.room)
      await part.append(some)
      done += some.byteLength
    }
  }

  /** If the response is lost, the size of the object shows the success: nobody else stores bytes under the key. */
  async function complete(to: string, stored: readonly StoredPart[]): Promise<void> {
    const failure = await calls.complete(key, to, stored).then(
      () => null,
      (error: unknown) => ({ error }),
    )
    const found = await calls.head(key)
    if (found === size) return
    throw failure?.error ?? new StoreError(`an object of ${size} bytes has ${found} bytes in the store`)
  }

  async function finish(sha256: Uint8Array): Promise<void> {
    if (upload !== null) {
      await flush()
      return await complete(upload, await Promise.all(sends))
    }
    await intents.hold(id)
    isHeld = true
    await part.send((bytes) => calls.put(key, bytes, sha256))
  }

  /** Removes what was sent. The intent stays if a request may still be executed. */
  async function clean(): Promise<void> {
    abort.abort()
    await part.discard().catch(() => undefined)
    for (const result of await Promise.allSettled(sends))
      if (result.status === 'rejected' && result.reason instanceof UncertainOutcome) isUncertain = true
    if (!isHeld) return
    try {
      if (upload !== null) await calls.abort(key, upload)
      await calls.remove(key)
      if (!isUncertain) return await intents.clear([id])
    } catch {
      // A sweep removes the rest.
    }
    intents.release([id])
  }

  try {
    for await (const chunk of source) {
      size += chunk.byteLength
      if (size > limit) throw fileTooLarge(limit)
      hash.update(chunk)
      if (missing > 0 && chunk.byteLength > 0) {
        // A copy: a view would keep the whole chunk in memory.
        head.push(new Uint8Array(chunk.subarray(0, missing)))
        missing -= Math.min(missing, chunk.byteLength)
      }
      await add(chunk)
    }
    const sha256 = hash.digest()
    await finish(sha256)
    return { id, handle: key, size, sha256, head: Buffer.concat(head) }
  } catch (error) {
    isUncertain ||= error instanceof UncertainOutcome
    await clean()
    throw error instanceof UncertainOutcome ? error.cause : error
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
export interface PartMemory {
  /** A part of at most `length` bytes. */
  create(length: number): Part
}

export function createPartMemory(limit = memoryLimit): PartMemory {
  let used = 0
  let sending = 0
  const waiting: (() => void)[] = []
  const spare: Buffer<ArrayBuffer>[] = []

  async function turn(): Promise<void> {
    if (sending < maxSends) sending += 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
  }
  function endTurn(): void {
    const next = waiting.shift()
    if (next) next()
    else sending -= 1
  }

  function allocate(length: number): Buffer<ArrayBuffer> | null {
    if (used + length > limit) return null
    used += length
    return (length === firstLength && spare.pop()) || Buffer.allocUnsafeSlow(length)
  }
  function free(buffer: Buffer<ArrayBuffer>): void {
    used -= buffer.length
    if (buffer.length === firstLength && spare.length < maxSpare) spare.push(buffer)
  }

  return {
    create(length) {
      let buffer: Buffer<ArrayBuffer> | null = null
      let file: FileHandle | null = null
      let size = 0

      /** Null if there is not enough memory. */
      function grow(needed: number): Buffer<ArrayBuffer> | null {
        if (buffer !== null && needed <= buffer.length) return buffer
        const larger = allocate(growth.find((step) => step >= needed && step < length) ?? length)
        if (larger === null) return null
        if (buffer !== null) {
          buffer.copy(larger, 0, 0, size)
          free(buffer)
        }
        buffer = larger
        return larger
      }

      async function spill(): Promise<FileHandle> {
        const created = await createUnnamedFile()
        file = created
        if (buffer !== null) {
          await writeWhole(created, buffer.subarray(0, size), 0)
          free(buffer)
          buffer = null
        }
        return created
      }

      async function write(chunk: Uint8Array): Promise<void> {
        try {
          await writeWhole(file ?? (await spill()), chunk, size)
        } catch (error) {
          throw asTemporaryFault(error)
        }
      }

      async function discard(): Promise<void> {
        if (buffer !== null) free(buffer)
        buffer = null
        size = 0
        await file?.close()
        file = null
      }

      async function bytes(): Promise<Uint8Array<ArrayBuffer>> {
        if (file === null) return buffer?.subarray(0, size) ?? new Uint8Array(0)
        const read = Buffer.allocUnsafeSlow(size)
        for (let done = 0; done < size; ) {
          const { bytesRead } = await file.read(read, done, size - done, done)
          if (bytesRead === 0) throw new Error('a temporary file ended before its size')
          done += bytesRead
        }
        return read
      }

      return {
        get size() {
          return size
        },
        get room() {
          return length - size
        },
        async append(chunk) {
          const into = file === null ? grow(size + chunk.byteLength) : null
          if (into !== null) into.set(chunk, size)
          else await write(chunk)
          size += chunk.byteLength
        },
        async send(send) {
          await turn()
          try {
            return await send(await bytes())
          } finally {
            endTurn()
            await discard()
          }
        },
        async take() {
          const taken = (await bytes()).slice()
          await discard()
          return taken
        },
        discard,
      }
    },
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
export interface HeldIntents {
  /** Durable when it resolves. */
  hold(id: ItemId): Promise<void>
  /** The intents stay recorded, until an item has the id or a sweep takes them. */
  release(ids: readonly ItemId[]): void
  /** Also removes the intents. If that fails, a sweep takes them. Call it when nothing can be stored under the ids any more. */
  clear(ids: readonly ItemId[]): Promise<void>
  close(): void
}

export function createHeldIntents(log: IntentLog): HeldIntents {
  const held = new Set<ItemId>()
  const extend = () => {
    // If it fails, the next extension is soon enough: deadlines are several intervals away.
    if (held.size > 0) log.record([...held]).catch(() => undefined)
  }
  const timer = setInterval(extend, extensionInterval).unref()

  function release(ids: readonly ItemId[]): void {
    for (const id of ids) held.delete(id)
  }

  return {
    async hold(id) {
      await log.record([id])
      held.add(id)
    },
    release,
    async clear(ids) {
      release(ids)
      if (ids.length > 0) await log.clear(ids).catch(() => undefined)
    },
    close: () => clearInterval(timer),
  }
}
