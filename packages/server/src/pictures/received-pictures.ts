import {
  createByteSource,
  createMemorySource,
  lengthOf,
  mayHaveRemovableMetadata,
  mayHaveTakenTime,
  type Piece,
  type RemovableFormat,
  type RemovalPlan,
  readTakenTime,
  requireBounded,
  type TakenReading,
  type TakenTime,
  UnreadableFile,
} from '@mediabucket/strip-metadata'
import { Fault } from '../core/faults.ts'
import { createItemIds, type ItemId } from '../core/ids.ts'
import { decodeText } from '../core/stored-type.ts'
import type { BlobStore, LocalBytes, OpenBlob } from '../storage/blobs/blobs.ts'
import { shareContent } from '../storage/blobs/memory-blob.ts'
import { type ReceivedBlob, type ReceivedFile, received } from '../storage/blobs/received-file.ts'
import type { BucketId } from '../storage/catalog/records.ts'
import { FairPlaces, PictureOverLimits, PictureWorkersBusy } from './picture-queue.ts'
import { type PictureSize, type PictureSource, sourceOf } from './picture-task.ts'
import type { PictureWorkers, ReadBytes } from './picture-workers.ts'
import { type InstalledTools, sourceFileOf } from './tools.ts'

/** The displayed width and height of a received picture; null if unknown. Never throws. */
export type MeasurePicture = (file: ReceivedFile, bucketId: BucketId) => Promise<PictureSize | null>

/** Bytes from the start of a picture that usually have its header. */
const headerLength = 262_144

/** Reads only the header of the picture, in a worker. */
export function measurePictureOperation(parts: {
  readonly blobs: Pick<BlobStore, 'share'>
  readonly workers: Pick<PictureWorkers, 'run'>
}): MeasurePicture {
  async function measure(picture: PictureSource, bucketId: BucketId): Promise<PictureSize | null> {
    const result = await parts.workers.run({ type: 'measure', picture }, `${bucketId}`)
    return result.outcome === 'measured' ? result.size : null
  }

  return async (file, bucketId) => {
    try {
      if ('bytes' in file) return await measure(file.bytes, bucketId)
      for (const length of [headerLength, Number.POSITIVE_INFINITY]) {
        const picture = await parts.blobs.share(file, length)
        try {
          const size = await measure(sourceOf(picture), bucketId)
          if (size !== null || picture.isWhole) return size
        } finally {
          await picture.release()
        }
      }
      return null
    } catch {
      // An upload succeeds without its dimensions.
      return null
    }
  }
}

/** When a received picture or video was taken (docs/interface.md M9). Null at once for other files. Never rejects. */
export type ReadTaken = (file: ReceivedFile, contentType: string) => Promise<ReadTime> | null

interface ReadTime {
  /** Null if it is unknown. */
  readonly taken: TakenTime | null
  /** False if the bytes could not be read now. */
  readonly isRead: boolean
}

/**
 * Reads of a file to find the time, each of which a remote store answers with a request while the upload waits, and the bytes of each. The time
 * is in the first bytes of nearly all files, or in a box or chunk at their end.
 */
const maxTakenReads = 16
const maxTakenRead = 262_144

/**
 * Reads the parts of the file that state the time in this process: a few positions of the file, in less time than a message to a worker
 * takes. The parser follows no more than some thousand parts.
 */
export function readTakenOperation(parts: {
  readonly blobs: Pick<BlobStore, 'openReceived'>
  readonly now: () => number
}): ReadTaken {
  async function read(file: ReceivedFile): Promise<TakenTime | null> {
    if ('bytes' in file) {
      const bytes = Buffer.from(file.bytes.buffer, file.bytes.byteOffset, file.size)
      return (await readTakenTime(createMemorySource(bytes), parts.now())).taken
    }
    const opened = await parts.blobs.openReceived(file)
    try {
      return await readTakenOf(opened, parts.now())
    } finally {
      await opened.close()
    }
  }
  // An upload succeeds without this time.
  const tryToRead = (file: ReceivedFile): Promise<ReadTime> =>
    read(file).then(
      (taken) => ({ taken, isRead: true }),
      (error: unknown) => ({ taken: null, isRead: error instanceof UnreadableFile }),
    )
  return (file, contentType) =>
    /^(?:image|video)\//.test(contentType) && mayHaveTakenTime(file.head) ? tryToRead(file) : null
}

/** When the picture or the video of an open file was taken; null if unknown. Throws what the store throws. */
export async function readTakenOf(opened: OpenBlob, now: number): Promise<TakenTime | null> {
  let left = maxTakenReads
  const fetch = (position: number, length: number) => {
    left -= 1
    if (left < 0) throw new UnreadableFile('the time must be read from too many parts')
    return readPart(opened, position, length)
  }
  return (await readTakenTime(createByteSource(opened.size, fetch, maxTakenRead), now)).taken
}

/**
 * Returns the file without its metadata (docs/interface.md X2): a new one with an id of its own if its bytes are in the blob store, or the
 * same one if it has none, or no decoder of the formats of X2 reads it. The caller discards the other one. Throws Fault `file-unreadable`,
 * `overloaded` and `storage-full`.
 */
export type RemoveMetadata = (file: ReceivedFile, removal: Removal) => Promise<CleanFile>

interface Removal {
  readonly contentType: string
  readonly bucketId: BucketId
  /** Whether the bucket keeps the time at which the picture was taken (docs/interface.md X7). */
  readonly keepsTaken: boolean
}

interface CleanFile {
  readonly stored: ReceivedFile
  /** What the file that was sent states, if the bucket keeps it; null if no decoder of the formats of X2 reads the file. */
  readonly reading: TakenReading | null
}

/** Bytes that are copied at a time. */
const copyLength = 1024 * 1024

/** Larger files are not compared. The store limits how many bytes it downloads for other processes. Bytes. */
const maxCompared = { local: 4 * 1024 ** 3, remote: 256 * 1024 ** 2 }

/**
 * Comparisons of files that the store downloads, at a time. Each needs two of the downloads that the store allows at a time, so more of them
 * would wait for each other's second one; and the pictures that are rendered need some too. No bucket has all. Milliseconds.
 */
const remotePlaces = { all: 3, each: 2, timeout: 60_000 }

interface Comparison {
  readonly format: RemovableFormat
  readonly contentType: string
  readonly bucketId: BucketId
  /** Whether the store downloads the files. */
  readonly isRemote: boolean
}

interface RemovalParts {
  readonly blobs: Pick<BlobStore, 'openReceived' | 'receive' | 'share' | 'discard'>
  readonly workers: Pick<PictureWorkers, 'run'>
  /** Those that start programs, and the programs. */
  readonly comparisonWorkers: Pick<PictureWorkers, 'run'>
  readonly tools: InstalledTools
  readonly now: () => number
}

export function removeMetadataOperation(parts: RemovalParts): RemoveMetadata {
  const remover = new MetadataRemover(parts)
  return (file, removal) => remover.remove(file, removal)
}

/**
 * A worker finds the metadata, and this process copies the rest, so that no worker can read or write other files. Then another worker
 * compares both files by decoders that do not know the plan.
 */
class MetadataRemover {
  readonly #parts: RemovalParts
  readonly #newId: () => ItemId
  readonly #places = new FairPlaces(remotePlaces)

  constructor(parts: RemovalParts) {
    this.#parts = parts
    this.#newId = createItemIds(parts.now)
  }

  async remove(file: ReceivedFile, removal: Removal): Promise<CleanFile> {
    const { contentType } = removal
    if (!mayHaveRemovableMetadata(file.head, file.size, contentType, isText))
      return { stored: file, reading: null }
    if (!('bytes' in file)) return await this.#removeFromBlob(file, removal)
    const { pieces, format, reading } = await this.#plan(file, removal)
    if (format === null || isWhole(pieces, file)) return { stored: file, reading }
    requireRead(reading)
    const stored = received(joined(pieces, file.bytes))
    await this.#requireSame(file, stored, { ...removal, format, isRemote: false })
    return { stored, reading }
  }

  /** The clean file is a blob of its own, which is discarded if it does not show the same. */
  async #removeFromBlob(file: ReceivedBlob, removal: Removal): Promise<CleanFile> {
    const { blobs } = this.#parts
    const opened = await blobs.openReceived(file)
    try {
      const { pieces, format, reading } = await this.#plan(file, removal, (position, length) =>
        readPart(opened, position, length),
      )
      if (format === null || isWhole(pieces, file)) return { stored: file, reading }
      requireRead(reading)
      const stored = await blobs.receive(this.#newId(), copied(pieces, opened), Number.POSITIVE_INFINITY)
      try {
        const isRemote = opened.content.type === 'object'
        await this.#requireSame(file, stored, { ...removal, format, isRemote })
        return { stored, reading }
      } catch (error) {
        await blobs.discard([stored])
        throw error
      }
    } finally {
      await opened.close()
    }
  }

  async #plan(
    file: ReceivedFile,
    { contentType, bucketId, keepsTaken }: Removal,
    read?: ReadBytes,
  ): Promise<RemovalPlan & { readonly reading: TakenReading | null }> {
    const bytes = 'bytes' in file ? file.bytes : null
    const now = keepsTaken ? this.#parts.now() : null
    const task = { type: 'plan-removal', contentType, size: file.size, bytes, now } as const
    const result = await orFault(contentType, this.#parts.workers.run(task, `${bucketId}`, read))
    if (result.outcome !== 'planned') throw unreadable(contentType)
    try {
      requireBounded(result.pieces, file.size)
    } catch (error) {
      throw unreadable(contentType, error)
    }
    return result
  }

  /** Throws Fault `file-unreadable` unless both files show the same, `overloaded` if that cannot be found out in time. */
  async #requireSame(
    sent: ReceivedFile,
    stored: ReceivedFile,
    { format, contentType, bucketId, isRemote }: Comparison,
  ): Promise<void> {
    const { comparisonWorkers, tools } = this.#parts
    const hasBoxes = format === 'boxes'
    if (sent.size > (isRemote ? maxCompared.remote : maxCompared.local)) {
      // Nothing moves in a file of boxes, and a video of this size is large because of its frames.
      if (hasBoxes) return
      throw new Fault('file-unreadable', `${mustShowSame} This file is too large to check that.`)
    }
    await using stack = new AsyncDisposableStack()
    if (isRemote) stack.defer(await orFault(contentType, this.#places.take(`${bucketId}`)))
    const open = async (file: ReceivedFile) => {
      const local = await this.#share(file)
      const source = hasBoxes ? await sourceFileOf(local) : null
      stack.defer(() => (source ?? local).release())
      return { picture: source?.path ?? sourceOf(local), output: source?.output ?? '' }
    }
    const [{ picture: before, output }, { picture: after }] = [await open(sent), await open(stored)]
    const [ffmpeg = null, heifConvert] = [tools.get('ffmpeg'), tools.get('heif-convert')]
    const heif = heifConvert === undefined ? null : { program: heifConvert, output }
    const task = { type: 'compare', before, after, programs: hasBoxes ? { ffmpeg, heif } : null } as const
    const result = await orFault(contentType, comparisonWorkers.run(task, `${bucketId}`))
    if (result.outcome !== 'compared')
      throw new Fault(
        'overloaded',
        'The service cannot run a program that compares the file at the moment.',
        {
          cause: new Error('reason' in result ? result.reason : result.outcome),
        },
      )
    const { verdict } = result
    if (verdict === 'same' || verdict === 'unchecked') return
    throw new Fault('file-unreadable', `${mustShowSame} ${reasons[verdict]}`)
  }

  async #share(file: ReceivedFile): Promise<LocalBytes> {
    return 'bytes' in file
      ? shareContent({ type: 'bytes', bytes: file.bytes })
      : await this.#parts.blobs.share(file, Number.POSITIVE_INFINITY)
  }
}

const isWhole = ([first, ...more]: readonly Piece[], { size }: ReceivedFile): boolean =>
  more.length === 0 && first !== undefined && 'from' in first && first.from === 0 && first.to === size

async function readPart(opened: OpenBlob, position: number, length: number): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(length)
  await opened.read(bytes, position)
  return bytes
}

function joined(pieces: readonly Piece[], from: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + lengthOf(piece), 0))
  let position = 0
  for (const piece of pieces) {
    if ('bytes' in piece) bytes.set(piece.bytes, position)
    if ('from' in piece) bytes.set(from.subarray(piece.from, piece.to), position)
    position += lengthOf(piece)
  }
  return bytes
}

async function* copied(pieces: readonly Piece[], opened: OpenBlob): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(copyLength)
  for (const piece of pieces) {
    if ('bytes' in piece) yield piece.bytes
    else
      for (let done = 0; done < lengthOf(piece); ) {
        const part = buffer.subarray(0, Math.min(copyLength, lengthOf(piece) - done))
        if ('from' in piece) await opened.read(part, piece.from + done)
        else part.fill(0)
        done += part.byteLength
        yield part
      }
  }
}

/** The result of a worker. Throws Fault `overloaded` if it has no time, `file-unreadable` if the file exceeds its memory or ends it. */
async function orFault<Result>(contentType: string, running: Promise<Result>): Promise<Result> {
  try {
    return await running
  } catch (error) {
    if (error instanceof PictureWorkersBusy || (error instanceof PictureOverLimits && error.isTimeout))
      throw new Fault('overloaded', 'Removing the metadata of the file takes too long at the moment.', {
        cause: error.cause,
      })
    if (error instanceof PictureOverLimits) throw unreadable(contentType, error)
    throw error
  }
}

const mustShowSame =
  'This bucket removes metadata from pictures and videos, and stores a file only if it shows the same afterwards.'
const reasons = {
  different: 'This file would not: it is damaged or of an unknown form.',
  undecodable: 'This file cannot be decoded, so that cannot be checked.',
  'too-large': 'This file has too many pixels to check that.',
} as const

const unreadable = (contentType: string, cause?: unknown) =>
  new Fault(
    'file-unreadable',
    `This bucket removes metadata from files of the type ${contentType}. This file is damaged or of an unknown form, so its metadata cannot be found.`,
    { cause },
  )

/** Throws Fault `file-unreadable` if the time would be lost with the metadata (docs/interface.md X7). */
function requireRead(reading: TakenReading | null): void {
  if (reading === null || reading.taken !== null || reading.fault === null) return
  throw new Fault(
    'file-unreadable',
    `This bucket removes metadata except the time at which pictures and videos were taken. The time of this file cannot be read and would be lost: ${reading.fault}.`,
  )
}

const isText = (head: Uint8Array): boolean => decodeText(head) !== null
