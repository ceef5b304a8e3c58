import { Fault } from '../../../core/fault.ts'
import type { PartialUploadHashes } from '../../partial-upload-hashes.ts'
import { type PartialChunk, type PartialUpload, PartialUploadLost } from '../../partial-uploads.ts'
import { type Part, type PartMemory, partLength } from '../part-memory.ts'
import { conflict, faultOf } from './errors.ts'
import { type SentPart, sizeOf, type UploadParts } from './upload-parts.ts'

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
export async function receiveChunk(
  {
    uploadParts,
    memory,
    hashes,
    isObject,
  }: {
    readonly uploadParts: Pick<UploadParts, 'recorded' | 'send'>
    readonly memory: PartMemory
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
