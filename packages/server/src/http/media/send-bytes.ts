import type { FastifyReply } from 'fastify'
import type { OpenBlob } from '../../blobs/blobs.ts'

/** Bytes up to which an answer is read whole and sent in one write with its head. */
const wholeLength = 65_536

/** Bytes per read. Each slow reader holds two blocks of them; once many do, blocks are smaller. */
const blockLength = 256 * 1024
const leastBlockLength = 16 * 1024

/** Bytes that all downloads together hold in blocks, but for those of the least length. */
const blockRoom = 64 * 1024 * 1024

/**
 * Answers bytes `start` to `end`, both inclusive, and closes the blob. A read that fails before the answer begins is
 * thrown; later it cuts the answer off.
 */
export type ByteSender = (
  reply: FastifyReply,
  blob: Pick<OpenBlob, 'read' | 'close'>,
  start: number,
  end: number,
  /** Called with an error that cuts the answer off. */
  onFailure: (error: unknown) => void,
) => Promise<FastifyReply>

/** The blocks of all downloads together are bounded. */
export function createByteSender(): ByteSender {
  let held = 0
  return async (reply, blob, start, end, onFailure) => {
    try {
      const length = end - start + 1
      if (length > wholeLength) {
        // An eighth of what is left, so that the next ones find room too.
        const fair = Math.max(leastBlockLength, Math.min(blockLength, Math.floor((blockRoom - held) / 8)))
        const block = Math.min(fair, length)
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
 * Two blocks take turns, one being read while the other is written: new memory for each would cost as much as the reading.
 * A block is read into again only once the system has taken all of it.
 */
async function sendBlocks(
  reply: FastifyReply,
  blob: Pick<OpenBlob, 'read'>,
  { start, end, block }: { readonly start: number; readonly end: number; readonly block: number },
  onFailure: (error: unknown) => void,
): Promise<void> {
  const response = reply.raw
  // Node forgets the callback of a write to a connection that has just been closed.
  const gone = new Error('the connection was closed')
  let giveUp = () => {}
  response.once('close', () => giveUp())
  const write = (bytes: Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      giveUp = () => reject(gone)
      if (response.destroyed) giveUp()
      else response.write(bytes, (error) => (error ? reject(gone) : resolve()))
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
    if (error !== gone) {
      onFailure(error)
      reply.log.error({ err: error }, 'an answer was cut off')
    }
    response.destroy()
  }
}
