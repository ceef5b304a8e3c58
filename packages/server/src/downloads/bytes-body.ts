import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { finished, type Readable } from 'node:stream'
import { endWithShared } from '../http/response-writers.ts'
import type { OpenVariant } from '../pictures/rendered-variants.ts'

/** Ranges up to this length of bytes on disk are read whole and sent in one write with their headers. Bytes. */
export const wholeLength = 65_536

/** Bytes per read. Each download holds two blocks; with many downloads blocks are smaller. */
const blockLength = 256 * 1024
const minBlockLength = 16 * 1024

/** The limit for the blocks of all downloads together, except those of the minimal length. Bytes. */
const blockRoom = 64 * 1024 * 1024

/** Writes the body of a response whose head has been written. A failure aborts the response. */
export type BodyWriter = (response: ServerResponse) => void

/** Receives the number of bytes that the system has accepted; of bytes that are written at once, before that. */
type OnSent = (bytes: number) => void

/**
 * Prepares the bytes from `start` to `end`, both inclusive, and closes the blob when they are sent. Rejects if the first
 * read fails. The writer must be called.
 */
export type BodyPreparer = (
  blob: OpenVariant,
  start: number,
  end: number,
  requestId: string,
  onSent: OnSent,
) => Promise<BodyWriter>

/** `onAbort` is called with the error that aborts a response. The memory for the blocks of all downloads together is limited. */
export function createBodyPreparer(onAbort: (error: unknown, requestId: string) => void): BodyPreparer {
  let held = 0

  async function prepareBlocks(
    blob: OpenVariant,
    start: number,
    end: number,
    onSent: OnSent,
  ): Promise<BlockWriter> {
    const length = end - start + 1
    // An eighth of the remaining room, so that further downloads find room too.
    const fairShare = Math.max(minBlockLength, Math.min(blockLength, Math.floor((blockRoom - held) / 8)))
    const block = Math.min(fairShare, length)
    held += 2 * block
    const release = async () => {
      held -= 2 * block
      await blob.close()
    }
    try {
      const first = Buffer.allocUnsafeSlow(block)
      await blob.read(first, start)
      return (response) =>
        writeBlocks(response, blob, first, { position: start + block, end }, onSent).finally(release)
    } catch (error) {
      await release()
      throw error
    }
  }

  const writeStream =
    (stream: Readable, length: number, requestId: string, onSent: OnSent): BodyWriter =>
    (response) =>
      sendStream(stream, response, length, (error) => onAbort(error, requestId), onSent)

  return async (blob, start, end, requestId, onSent) => {
    const { content } = blob
    const length = end - start + 1
    if (content.type === 'bytes')
      return writeMemory(blob, content.bytes.subarray(start, end + 1), onSent, content.isShared)
    if (content.type === 'object')
      return writeStream(await started(await content.stream(start, end)), length, requestId, onSent)
    if (length <= wholeLength) return writeMemory(blob, await readAndClose(blob, start, length), onSent)
    const write = await prepareBlocks(blob, start, end, onSent)
    return (response) =>
      void write(response).catch((error: unknown) => {
        response.destroy()
        if (error !== closed) onAbort(error, requestId)
      })
  }
}

/** Waits for the first bytes, so that a failure still gets a response of its own. */
async function started(stream: Readable): Promise<Readable> {
  await once(stream, 'readable')
  return stream
}

type BlockWriter = (response: ServerResponse) => Promise<void>

const closed = new Error('the connection was closed')

/** Sends bytes that are in memory, and closes the blob. */
const writeMemory =
  (blob: OpenVariant, bytes: Uint8Array, onSent: OnSent, isShared = false): BodyWriter =>
  (response) => {
    closeWhenSent(response, blob)
    if (response.destroyed) return
    onSent(bytes.length)
    if (isShared) endWithShared(response, bytes)
    else response.end(bytes)
  }

/** Bytes in memory are in use until the system has accepted them. */
export function closeWhenSent(response: ServerResponse, blob: OpenVariant): void {
  if (response.destroyed) void blob.close()
  else response.once('close', () => void blob.close())
}

async function readAndClose(blob: OpenVariant, start: number, length: number): Promise<Uint8Array> {
  try {
    const bytes = Buffer.allocUnsafe(length)
    await blob.read(bytes, start)
    return bytes
  } finally {
    await blob.close()
  }
}

/**
 * Alternates between two blocks: one is filled while the other is written. New memory for each block would cost as much as
 * reading it. A block is reused only after the system has accepted all of it.
 */
async function writeBlocks(
  response: ServerResponse,
  blob: Pick<OpenVariant, 'read'>,
  first: Buffer<ArrayBuffer>,
  { position: next, end }: { readonly position: number; readonly end: number },
  onSent: OnSent,
): Promise<void> {
  // Node does not call the callback of a write to a connection that has just been closed.
  let rejectWrite = () => {}
  response.once('close', () => rejectWrite())
  const write = (bytes: Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      rejectWrite = () => reject(closed)
      if (response.destroyed) rejectWrite()
      else
        response.write(bytes, (error) => {
          if (error) return reject(closed)
          onSent(bytes.length)
          resolve()
        })
    })
  let position = next
  async function readInto(target: Buffer<ArrayBuffer>): Promise<Buffer<ArrayBuffer>> {
    const bytes = target.subarray(0, end + 1 - position)
    await blob.read(bytes, position)
    position += bytes.length
    return bytes
  }

  let spare = first
  let free = Buffer.allocUnsafeSlow(first.length)
  let bytes = first
  while (position <= end) {
    const [filled] = await Promise.all([readInto(free), write(bytes)])
    ;[free, spare] = [spare, free]
    bytes = filled
  }
  if (response.destroyed) return
  response.end(bytes)
  onSent(bytes.length)
}

/** Bytes that a response holds before its source is paused. */
const maxUnsent = 128 * 1024

/**
 * Sends a stream of `length` bytes, and ends the response after it. If it fails or has another length, the connection is closed, so the
 * response is never complete; `onFailure` is called then, unless the client has closed the connection.
 */
export function sendStream(
  stream: Readable,
  response: ServerResponse,
  length: number,
  onFailure: (error: Error) => void,
  onSent: OnSent = () => {},
): void {
  let missing = length

  function fail(error: Error): void {
    if (missing === 0 || response.destroyed) return
    response.destroy()
    onFailure(error)
  }

  function send(chunk: Buffer<ArrayBuffer>): void {
    if (chunk.byteLength > missing) {
      fail(new Error('a stream is longer than the response'))
      return
    }
    missing -= chunk.byteLength
    const { byteLength } = chunk
    response.write(chunk, (error) => {
      if (error) return
      onSent(byteLength)
      free(chunk)
      if (stream.isPaused() && response.writableLength < maxUnsent) stream.resume()
    })
    if (missing === 0) response.end()
    else if (response.writableLength >= maxUnsent) stream.pause()
  }

  finished(stream, { writable: false }, (error) =>
    fail(error ?? new Error('a stream is shorter than the response')),
  )
  if (response.destroyed) return void stream.destroy()
  response.once('close', () => stream.destroy())
  stream.on('data', send)
}

/**
 * Frees the memory of bytes that the system has accepted. Left to the garbage collector, the chunks of a large download start several
 * complete collections a second.
 */
function free({ buffer, byteLength }: Buffer<ArrayBuffer>): void {
  if (buffer.byteLength === byteLength && !buffer.detached) buffer.transfer(0)
}
