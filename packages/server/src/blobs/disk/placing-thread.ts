import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { MediaId } from '../../core/media-id.ts'
import { createDirectorySync } from './directory-sync.ts'
import { createKeepFile } from './keep-file.ts'
import { newFile } from './new-file.ts'
import { openShards } from './shards.ts'
import { threadFiles } from './thread-files.ts'
import { timedPlacing } from './timed-files.ts'

/** A file to be put in place: the bytes of a small one, or the path of one that is on the disk and synced. */
export interface PlacedFile {
  readonly number: number
  readonly id: MediaId
  readonly content: Uint8Array | string
}

/** A list of files, or null to end. */
export type ToPlacingThread = readonly PlacedFile[] | null

/** The answer to a list, and the seconds of the syncs that were made. */
export interface FromPlacingThread {
  readonly placed: readonly Placed[]
  readonly syncs: readonly number[]
}

/** Why a file is not in place; a structured clone would lose the system's code. */
export interface PlacingError {
  readonly message: string
  readonly stack: string | undefined
  readonly code: unknown
}

interface Placed {
  readonly number: number
  /** Null where it is. */
  readonly error: PlacingError | null
}

/**
 * The thread that puts files in place, nobody else does where it runs, and many in one go: each step is taken for all of
 * them before the next one, so that they share what the disk does for it. Says `ready` once, then answers each list.
 */
if (!parentPort) throw new Error('files are put in place by a worker thread only')
const port = parentPort
const { directory }: { directory: string } = workerData
/** Seconds of the syncs since the last list was answered. */
let syncs: number[] = []
const files = timedPlacing(threadFiles, (seconds) => void syncs.push(seconds))
const sync = createDirectorySync(files)
const shards = await openShards(join(directory, 'blobs'), files, sync, true)
const keepFile = createKeepFile({ shards, files, sync })
let underWay = 0
let isClosing = false

async function place({ number, id, content }: PlacedFile): Promise<Placed> {
  try {
    if (typeof content === 'string') await keepFile(content, id)
    else await placeNew(content, id)
    return { number, error: null }
  } catch (error) {
    return { number, error: errorOf(error) }
  }
}

async function placeNew(bytes: Uint8Array, id: MediaId): Promise<void> {
  const path = join(directory, 'tmp', randomUUID())
  await newFile(files, path, (file) => file.write(bytes))
  try {
    await keepFile(path, id)
  } catch (error) {
    await files.unlink(path).catch(() => undefined)
    throw error
  }
}

function errorOf(error: unknown): PlacingError {
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  return { message, stack, code: error instanceof Error && 'code' in error ? error.code : undefined }
}

async function placeAll(list: readonly PlacedFile[]): Promise<void> {
  underWay += 1
  const placed = await Promise.all(list.map(place))
  port.postMessage({ placed, syncs } satisfies FromPlacingThread)
  syncs = []
  underWay -= 1
  if (isClosing && underWay === 0) port.close()
}

port.on('message', (first: ToPlacingThread) => {
  const list: PlacedFile[] = []
  let message: ToPlacingThread | undefined = first
  while (message) {
    list.push(...message)
    message = receiveMessageOnPort(port)?.message
  }
  if (message === null) isClosing = true
  void placeAll(list)
})
port.postMessage('ready')
