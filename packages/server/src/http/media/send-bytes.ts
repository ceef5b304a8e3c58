import type { FastifyReply } from 'fastify'
import type { OpenBlob } from '../../blobs/blobs.ts'

/** Responses up to this length are read whole and sent in one write with their headers. Bytes. */
const wholeLength = 65_536

/** Bytes per read. Each download holds two blocks; with many downloads blocks are smaller. */
const blockLength = 256 * 1024
const minBlockLength = 16 * 1024

/** The limit for the blocks of all downloads together, except those of the minimal length. Bytes. */
const blockRoom = 64 * 1024 * 1024

/**
 * Sends the bytes from `start` to `end`, both inclusive, and closes the blob. Throws where a read fails before the
 * response has begun; a later failure aborts the response.
 */
export type ByteSender = (
  reply: FastifyReply,
  blob: Pick<OpenBlob, 'read' | 'close'>,
  start: number,
  end: number,
  /** Called with the error that aborts a response. */
  onFailure: (error: unknown) => void,
) => Promise<FastifyReply>

/** The memory for the blocks of all downloads together is limited. */
export function createByteSender(): ByteSender {
  let held = 0
  return async (reply, blob, start, end, onFailure) => {
    try {
      const length = end - start + 1
      if (length > wholeLength) {
        // An eighth of the remaining room, so that further downloads find room too.
        const fairShare = Math.max(minBlockLength, Math.min(blockLength, Math.floor((blockRoom - held) / 8)))
        const block = Math.min(fairShare, length)
        held += 2 * block
        try {
          await sendBlocks(reply, blob, { start, end, block }, onFailure)
        } finally {
          held -= 2 * block
        }
        return reply
      }
      const bytes = Buffer.allocUnsafe(length)
      await blob.read(bytes, start)
      return reply.send(bytes)
    } finally {
      await blob.close()
    }
  }
}

/**
 * Alternates between two blocks: one is filled while the other is written. New memory for each block would cost as much as
 * reading it. A block is reused only after the system has accepted all of it.
 */
async function sendBlocks(
  reply: FastifyReply,
  blob: Pick<OpenBlob, 'read'>,
  { start, end, block }: { readonly start: number; readonly end: number; readonly block: number },
  onFailure: (error: unknown) => void,
): Promise<void> {
  const response = reply.raw
  // Node does not call the callback of a write to a connection that has just been closed.
  const closed = new Error('the connection was closed')
  let rejectWrite = () => {}
  response.once('close', () => rejectWrite())
  const write = (bytes: Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      rejectWrite = () => reject(closed)
      if (response.destroyed) rejectWrite()
      else response.write(bytes, (error) => (error ? reject(closed) : resolve()))
    })
  let position = start
  async function readInto(target: Buffer): Promise<Buffer> {
    const bytes = target.subarray(0, end + 1 - position)
    await blob.read(bytes, position)
    position += bytes.length
    return bytes
  }

  let free = Buffer.allocUnsafeSlow(block)
  let spare = Buffer.allocUnsafeSlow(block)
  let bytes = await readInto(free)
  reply.hijack()
  response.statusCode = reply.statusCode
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) response.setHeader(name, value)
  try {
    while (position <= end) {
      ;[free, spare] = [spare, free]
      ;[bytes] = await Promise.all([readInto(free), write(bytes)])
    }
    response.end(bytes)
  } catch (error) {
    if (error !== closed) {
      onFailure(error)
      reply.log.error({ err: error }, 'a response was aborted')
    }
    response.destroy()
  }
}
