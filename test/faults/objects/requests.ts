import { type Pair, signHeaders } from '../../harness/s3-door.ts'
import type { Instance } from '../server-instances.ts'
import { tick, type Window } from './register.ts'

/** A response that arrived completely. */
export interface Answer extends Window {
  readonly status: number
  readonly headers: Headers
  /** Without quotes. */
  readonly etag: string
  readonly bytes: Buffer<ArrayBuffer>
  /** Empty for a HEAD. */
  readonly text: string
  /** The code of an error, also of one in a 200; null for none. */
  readonly code: string | null
}

export interface Sent {
  readonly query?: Readonly<Record<string, string | number>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array<ArrayBuffer> | string
}

/** Milliseconds, also on a busy machine. */
const longestResponse = 300_000

/** Each segment as it is in a URL. */
const encoded = (key: string): string => key.split('/').map(encodeURIComponent).join('/')

/** Sends signed requests for one bucket. They throw if the connection ends without a response. */
export class Door {
  readonly #pair: Pair
  readonly bucket: string

  constructor(pair: Pair, bucket: string) {
    this.#pair = pair
    this.bucket = bucket
  }

  async send({ s3 }: Instance, method: string, key: string | null, sent: Sent = {}): Promise<Answer> {
    const { query = {}, headers = {}, body } = sent
    const start = tick()
    const search = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    const path = `/${this.bucket}${key === null ? '' : `/${encoded(key)}`}`
    const url = `${s3}${path}${search.length === 0 ? '' : `?${search.join('&')}`}`
    const sending = body === undefined ? {} : { body }
    const signed = signHeaders(this.#pair, url, { method, headers, ...sending })
    const init = { method, headers: signed.headers, signal: AbortSignal.timeout(longestResponse), ...sending }
    const response = await fetch(url, init).catch((error: unknown) => {
      if (error instanceof TypeError) throw error
      throw new Error(`${method} ${path} ${search} has no response`, { cause: error })
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    const isXml = response.headers.get('content-type') === 'application/xml'
    const text = isXml ? bytes.toString() : ''
    const isError = response.status >= 300 || /<Error>/.test(text)
    return {
      ...{ start, end: tick(), status: response.status, headers: response.headers, bytes, text },
      etag: (response.headers.get('etag') ?? textOf(text, 'ETag')).replaceAll(/"|&quot;/g, ''),
      code: isError ? textOf(text, 'Code') || `${response.status}` : null,
    }
  }
}

const unescaped = (text: string): string =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&apos;', "'")
    .replaceAll('&amp;', '&')

/** The text of the first element of this name. */
export const textOf = (xml: string, name: string): string =>
  unescaped(new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? '')

/** The contents of all elements of this name. */
export const elementsOf = (xml: string, name: string): string[] =>
  [...xml.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, 'gs'))].map(([, content = '']) => content)

export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
