import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request as secureRequest, Agent as TlsAgent } from 'node:https'
import { errorCode, Fault, type FaultCode } from '../core/faults.ts'
import { version } from '../core/version.ts'
import { type AddressGuard, pinned, RefusedAddress, unlessAborted } from '../http/address-guard.ts'
import { dispositionFilename, parseParameters } from '../http/headers.ts'

// An import would load more: see core/node-http.ts.
const http = process.getBuiltinModule('node:http')

/** A file on another server, whose bytes have begun to arrive. */
export interface UrlSource {
  /** What the server calls the file, or the last part of the path of its URL; null for none. */
  readonly filename: string | null
  readonly contentType: string | null
  /** Bytes; null if the server does not state it. */
  readonly length: number | null
  /** Throws Fault `source-failed` and `source-timeout`. */
  readonly body: AsyncIterable<Uint8Array>
  close(): void
}

/** Milliseconds for each request, from the lookup of the name to the status. */
const requestTimeout = 15_000

/** Redirects that are followed. */
const maxRedirects = 5

/** Milliseconds without a byte, and for all bytes. */
const silenceTimeout = 15_000
const bodyTimeout = 3_600_000

/** Bytes in a millisecond, in the mean, at least: 1 kB in a second. */
const leastRate = 1

/** Characters of a URL. */
export const maxSourceUrl = 2_048

/** What a URL of a source must be, for messages. */
export const sourceUrlRule = `A URL with http or https, of at most ${maxSourceUrl} characters, without user name and password.`

/** The URL without its fragment; null if it does not follow `sourceUrlRule`. */
export function parseSourceUrl(text: string, base?: URL): URL | null {
  if (text.length > maxSourceUrl || !URL.canParse(text, base?.href)) return null
  const url = new URL(text, base)
  url.hash = ''
  const isAccepted = /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  return isAccepted && url.href.length <= maxSourceUrl ? url : null
}

/**
 * Requests a URL, and follows its redirects. Each request goes to an address that the guard has checked, without credentials, cookies and proxies of the
 * environment. Throws Fault `source-refused`, `source-failed` and `source-timeout`, and the reason of the signal.
 */
export async function openUrl(guard: AddressGuard, first: URL, signal: AbortSignal): Promise<UrlSource> {
  let url = first
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const { sent, response } = await request(guard, url, signal)
    const { statusCode: status = 0, headers } = response
    if (status === 200 || status === 203) {
      const coding = codingOf(headers)
      if (coding === null) return sourceOf({ sent, response }, url, signal)
      sent.destroy()
      // Without its value: a text of another server is no part of a message.
      throw failed(`The server of the URL sent the file with a ${coding}.`, status)
    }
    sent.destroy()
    const { location } = headers
    if (!redirectStatuses.has(status) || location === undefined)
      throw failed(`The server of the URL responded with ${status}.`, status)
    const next = parseSourceUrl(location, url)
    if (next === null)
      throw refused('The server of the URL redirects to what is not a plain http or https URL.')
    if (url.protocol === 'https:' && next.protocol === 'http:')
      throw refused('The server of the URL redirects from https to http.')
    url = next
  }
  throw failed(`The server of the URL redirects more than ${maxRedirects} times.`)
}

/** The header with a coding in which the bytes are not those of the file; null if there is none. Node decodes only `chunked`. */
function codingOf(headers: IncomingHttpHeaders): string | null {
  const has = (name: string, accepted: string) =>
    (headers[name]?.toString() ?? accepted).trim().toLowerCase() !== accepted
  if (has('content-encoding', 'identity')) return 'Content-Encoding'
  return has('transfer-encoding', 'chunked') ? 'Transfer-Encoding other than chunked' : null
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

const refused = (detail: string) => new Fault('source-refused', detail)

const failed = (detail: string, status?: number, code: FaultCode = 'source-failed') =>
  new Fault(code, detail, { members: status === undefined ? {} : { source_status: status } })

interface Responding {
  readonly sent: ClientRequest
  readonly response: IncomingMessage
}

async function request(guard: AddressGuard, url: URL, signal: AbortSignal): Promise<Responding> {
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(), requestTimeout)
  const ended = AbortSignal.any([timeout.signal, signal])
  try {
    const addresses = await unlessAborted(guard.addressesOf(url.hostname), ended)
    return await exchange(url, addresses, ended)
  } catch (error) {
    signal.throwIfAborted()
    if (timeout.signal.aborted)
      throw failed(
        `The server of the URL did not respond within ${requestTimeout / 1_000} seconds.`,
        undefined,
        'source-timeout',
      )
    if (error instanceof RefusedAddress)
      throw error.isUnknown ? failed(error.message) : refused(error.message)
    const code = errorCode(error) ?? errorCode(error instanceof AggregateError ? error.errors[0] : null)
    throw failed(reasonOf(code))
  } finally {
    clearTimeout(timer)
  }
}

/** Why a request got no response, by the code of its error. */
function reasonOf(code: string | null): string {
  if (code === null) return 'The request to the server of the URL failed.'
  if (code === 'HPE_HEADER_OVERFLOW')
    return 'The server of the URL sent more headers than this service reads.'
  if (code.startsWith('HPE_'))
    return `The server of the URL sent a response that is not valid HTTP (${code}).`
  // Codes of Node's TLS, and of OpenSSL for certificates.
  if (/^(EPROTO|ERR_(SSL|TLS)_|INVALID_(CA|PURPOSE)$|UNABLE_TO_)|CERT(_|$)/.test(code))
    return `The server of the URL and this service agreed on no TLS connection (${code}).`
  return `The request to the server of the URL failed with ${code}.`
}

/** Sends one request to one of the addresses, on a connection of its own. Resolves when the head of the response has arrived. */
function exchange(url: URL, addresses: readonly string[], signal: AbortSignal): Promise<Responding> {
  const { promise, resolve, reject } = Promise.withResolvers<Responding>()
  const headers = {
    'user-agent': `mediabucket/${version}`,
    accept: '*/*',
    'accept-encoding': 'identity',
    connection: 'close',
  }
  const options = { method: 'GET', lookup: pinned(addresses), headers }
  // Agents of its own: the global ones may use a proxy of the environment.
  const sent =
    url.protocol === 'https:'
      ? secureRequest(url, { ...options, agent: new TlsAgent() })
      : http.request(url, { ...options, agent: new http.Agent() })
  const abort = () => sent.destroy()
  signal.addEventListener('abort', abort, { once: true })
  const settle = () => signal.removeEventListener('abort', abort)
  // Stays: the connection can fail at any time.
  sent.on('error', reject)
  sent.once('response', (response) => {
    settle()
    // Before it is read, a failure has no other listener.
    response.on('error', () => undefined)
    resolve({ sent, response })
  })
  sent.once('upgrade', (_response, socket) => socket.destroy())
  sent.once('close', () => {
    settle()
    reject(new Error('the connection was closed without a response'))
  })
  sent.end()
  return promise
}

function sourceOf({ sent, response }: Responding, url: URL, signal: AbortSignal): UrlSource {
  const { headers } = response
  const length = headers['content-length']
  return {
    filename: nameOf(headers['content-disposition'], url),
    contentType: headers['content-type'] ?? null,
    length: length !== undefined && headers['transfer-encoding'] === undefined ? Number(length) : null,
    body: bytesOf(response, signal),
    close: () => void sent.destroy(),
  }
}

function nameOf(disposition: string | undefined, url: URL): string | null {
  const parsed = disposition === undefined ? null : parseParameters(disposition)
  const stated = parsed === null ? null : (dispositionFilename(parsed) ?? null)
  if (stated !== null) return lastPart(stated)
  try {
    return lastPart(decodeURIComponent(url.pathname))
  } catch {
    return lastPart(url.pathname)
  }
}

/** A name of another server has no path. */
const lastPart = (path: string): string | null => path.slice(path.lastIndexOf('/') + 1) || null

/** The bytes as they arrive, until they take too long. Only the time in which this process waits for them counts. */
async function* bytesOf(
  response: IncomingMessage,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, void> {
  const chunks: AsyncIterator<Uint8Array> = response[Symbol.asyncIterator]()
  const abort = () => response.destroy()
  signal.addEventListener('abort', abort, { once: true })
  let waited = 0
  let size = 0
  try {
    for (;;) {
      signal.throwIfAborted()
      const left = Math.min(silenceTimeout, silenceTimeout + Math.min(size / leastRate, bodyTimeout) - waited)
      const began = performance.now()
      const { done, value } = await nextWithin(chunks, response, left)
      waited += performance.now() - began
      if (done) return
      size += value.byteLength
      yield value
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Fault) throw error
    throw failed('The connection to the server of the URL ended before the whole file had arrived.')
  } finally {
    signal.removeEventListener('abort', abort)
    response.destroy()
  }
}

/** Throws Fault `source-timeout` if no chunk arrives within `left` milliseconds. */
async function nextWithin<T>(
  chunks: AsyncIterator<T>,
  response: IncomingMessage,
  left: number,
): Promise<IteratorResult<T>> {
  let isLate = false
  const timer = setTimeout(
    () => {
      isLate = true
      response.destroy()
    },
    Math.max(0, left),
  )
  try {
    const result = await chunks.next()
    if (!isLate) return result
  } catch (error) {
    if (!isLate) throw error
  } finally {
    clearTimeout(timer)
  }
  throw failed(
    'The server of the URL sends the file too slowly, or without end.',
    undefined,
    'source-timeout',
  )
}
