import type { IncomingMessage } from 'node:http'
import type { BodyGate } from './body-gate.ts'
import { askForBody } from './unread-bodies.ts'

/**
 * The body as it arrives; each chunk is empty once the next one is asked for. A client that waits to be told to send it
 * is told when the first byte is asked for. The request outlives a reader that gives up, so that it can be answered.
 */
export type BytesOf = (
  request: IncomingMessage,
  /** Part of a body is worth nothing. */
  wholeOnly?: boolean,
) => AsyncGenerator<Uint8Array, void, void>

export const createBytesOf = (gate: BodyGate): BytesOf =>
  async function* bytesOf(request, wholeOnly = false) {
    const passage = gate.enter(request)
    try {
      await passage.opened()
      askForBody(request)
      const isSmall =
        wholeOnly && Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY) <= smallBody
      const chunks = isSmall ? allOf(request) : request.iterator({ destroyOnReturn: false })
      for await (const chunk of chunks) {
        passage.hold(chunk.byteLength)
        yield chunk
        passage.release(chunk.byteLength)
        giveBack(chunk)
        await passage.opened()
      }
    } finally {
      passage.leave()
    }
  }

/** As much as a stream of Node's takes in before anybody asks. Bytes. */
const smallBody = 65_536

/** All that comes. An iterator of Node's for one chunk or two costs twice what the rest of their reading does. */
async function* allOf(request: IncomingMessage): AsyncGenerator<Buffer, void, void> {
  yield* await new Promise<Buffer[]>((resolve, reject) => {
    const gone = () => {
      if (!request.readableEnded) reject(request.errored ?? aborted())
    }
    if (request.destroyed) return reject(request.errored ?? aborted())
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.once('end', () => resolve(chunks))
    request.once('error', reject)
    request.once('close', gone)
  })
}

/** As Node tells it. */
const aborted = (): Error => Object.assign(new Error('aborted'), { code: 'ECONNRESET' })

/**
 * Frees a chunk that has memory of its own. Left to the garbage collector, chunks make it run dozens of times for each
 * gigabyte, which takes longer than the hashing.
 */
function giveBack({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
