import { createHash, webcrypto } from 'node:crypto'
import { Fault } from '../../core/fault.ts'
import type { ItemId } from '../../core/media-id.ts'
import { headLength, type ReceivedBlob } from '../received-blob.ts'
import type { HeldIntents } from './held-intents.ts'
import { type ObjectCalls, type StoredPart, UncertainOutcome } from './object-calls.ts'
import { type Part, type PartMemory, partLength } from './part-memory.ts'
import { StoreError } from './s3-errors.ts'

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
      if (size > limit)
        throw new Fault('file-too-large', `The file is larger than the limit of ${limit} bytes.`)
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
