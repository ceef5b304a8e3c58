import type { Agent, ClientRequest, IncomingMessage } from 'node:http'
import { request as secureRequest, Agent as TlsAgent } from 'node:https'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { errorCode } from '../core/faults.ts'
import { version } from '../core/version.ts'
import { ScanCutOff, type ScannedFile, type Scanner, type Verdict } from './scanner.ts'

// An import would load more: see core/node-http.ts.
const http = process.getBuiltinModule('node:http')

/** Bytes of a response that are read. */
const maxResponse = 4_096

interface ScannerResponse {
  readonly status: number
  readonly text: string
  /** Whether it has arrived before the whole file was sent. */
  readonly isEarly: boolean
}

/** Has files scanned by another service: a POST of the bytes (docs/interface.md SC3). */
export class HttpScanner implements Scanner {
  readonly #url: URL
  /** Agents of its own: the global ones may use a proxy of the environment. */
  readonly #agent: Agent

  constructor(url: URL) {
    this.#url = url
    this.#agent =
      url.protocol === 'https:' ? new TlsAgent({ keepAlive: true }) : new http.Agent({ keepAlive: true })
  }

  async scan(file: ScannedFile, signal: AbortSignal): Promise<Verdict> {
    const { status, text, isEarly } = await this.#send('POST', file, signal)
    if (status >= 200 && status < 300) {
      if (isEarly) throw new Error(`the scanner responded with ${status} before it had the whole file`)
      return { outcome: 'clean' }
    }
    if (status === 406 || status === 422) return { outcome: 'refused', reason: reasonOf(text) }
    if (status === 413) return { outcome: 'too-large' }
    throw new Error(`the scanner responded with ${status}`)
  }

  /** Any response shows that the scanner can be reached. */
  async check(signal: AbortSignal): Promise<void> {
    const { status } = await this.#send('OPTIONS', { bytes: [], size: 0 }, signal)
    if (status >= 500) throw new Error(`the scanner responded with ${status}`)
  }

  async #send(
    method: 'POST' | 'OPTIONS',
    { bytes, size }: ScannedFile,
    signal: AbortSignal,
  ): Promise<ScannerResponse> {
    signal.throwIfAborted()
    const send = this.#url.protocol === 'https:' ? secureRequest : http.request
    const headers = {
      'user-agent': `mediabucket/${version}`,
      'content-type': 'application/octet-stream',
      'content-length': size,
    }
    const request = send(this.#url, { method, headers, agent: this.#agent, signal })
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    request.on('error', (error) => reject(isCutOff(request, error) ? new ScanCutOff(error.message) : error))
    request.once('response', resolve)
    // A scanner may refuse a file before it has read all of it.
    const sent = { size: 0 }
    const sending = pipeline(countBytes(bytes, sent), request).catch(reject)
    let isWhole = false
    try {
      const response = await promise
      // TLS reports in the next turn of the event loop that the last bytes are written.
      await nextTurn()
      const isEarly = sent.size < size || request.writableLength > 0
      const text = await beginningOf(response)
      isWhole = request.writableFinished && response.complete
      return { status: response.statusCode ?? 0, text, isEarly }
    } finally {
      // A connection with unread or unsent bytes cannot be used again.
      if (!isWhole) request.destroy()
      await sending
    }
  }
}

/** Yields the bytes, and counts those that a writer has taken. */
async function* countBytes(
  bytes: ScannedFile['bytes'],
  taken: { size: number },
): AsyncGenerator<Uint8Array, void, void> {
  for await (const chunk of bytes) {
    taken.size += chunk.byteLength
    yield chunk
  }
}

/** A connection that was unused for a while may have been closed before the file. */
const isCutOff = (request: ClientRequest, error: unknown): boolean =>
  !request.reusedSocket &&
  (request.socket?.bytesWritten ?? 0) > 0 &&
  !request.writableFinished &&
  ['EPIPE', 'ECONNRESET'].includes(errorCode(error) ?? '')

async function beginningOf(response: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response) {
    const bytes: Uint8Array = chunk
    chunks.push(bytes.subarray(0, maxResponse - size))
    size += bytes.byteLength
    if (size >= maxResponse) break
  }
  return Buffer.concat(chunks).toString()
}

/** The member `detail` of a JSON object, or the first line of a text. */
function reasonOf(body: string): string {
  try {
    const value: unknown = JSON.parse(body)
    if (typeof value === 'object' && value !== null && 'detail' in value && typeof value.detail === 'string')
      return value.detail
  } catch {
    // A text.
  }
  return body.trim().split('\n', 1)[0] ?? ''
}
