import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { MediaId } from '../../core/media-id.ts'
import { createDirectorySync } from './directory-sync.ts'
import { createKeepFile } from './keep-file.ts'
import { newFile } from './new-file.ts'
import { openShards } from './shards.ts'
import { threadFiles as files } from './thread-files.ts'

/** A small file to be put in place. */
export interface SmallFile {
  readonly number: number
  readonly id: MediaId
  readonly bytes: Uint8Array
}

/** A list of files, or null to end. */
export type ToPlacingThread = readonly SmallFile[] | null

/** Why a file is not in place; a structured clone would lose the system's code. */
export interface PlacingError {
  readonly message: string
  readonly stack: string | undefined
  readonly code: unknown
}

export interface Placed {
  readonly number: number
  /** Null where it is. */
  readonly error: PlacingError | null
}

/**
 * A thread that puts small files in place, many in one go: each step is taken for all of them before the next one, so
 * that they share what the disk does for it. Says `ready` once, then answers each list.
 */
if (!parentPort) throw new Error('small files are put in place by a worker thread only')
const port = parentPort
const { directory }: { directory: string } = workerData
const sync = createDirectorySync(files)
const shards = await openShards(join(directory, 'blobs'), files, sync)
const keepFile = createKeepFile({ shards, files, sync })

async function place({ number, id, bytes }: SmallFile): Promise<Placed> {
  const path = join(directory, 'tmp', randomUUID())
  try {
    await newFile(files, path, (file) => file.write(bytes))
    await keepFile(path, id)
    return { number, error: null }
  } catch (error) {
    await files.unlink(path).catch(() => undefined)
    return { number, error: errorOf(error) }
  }
}

function errorOf(error: unknown): PlacingError {
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  return { message, stack, code: error instanceof Error && 'code' in error ? error.code : undefined }
}

async function placeAll(list: readonly SmallFile[]): Promise<void> {
  port.postMessage(await Promise.all(list.map(place)))
}

let underWay: Promise<unknown> = Promise.resolve()
port.on('message', (first: ToPlacingThread) => {
  const list: SmallFile[] = []
  let message: ToPlacingThread | undefined = first
  while (message) {
    list.push(...message)
    message = receiveMessageOnPort(port)?.message
  }
  underWay = Promise.all([underWay, placeAll(list)])
  if (message === null) void underWay.then(() => port.close())
})
port.postMessage('ready')
