import type { IncomingMessage } from 'node:http'
import { S3Error } from './s3-errors.ts'

/** Where a request of the S3 protocol leads. */
export interface RequestTarget {
  /** As it was sent, percent-encoded, from the host on; what is signed. */
  readonly path: string
  /** Null for the service. */
  readonly bucket: string | null
  /** Null for a bucket. */
  readonly key: string | null
  /** The parameters, decoded, in the order in which they were sent. */
  readonly query: URLSearchParams
  /** The bucket is in the host, not in the path. */
  readonly isVirtual: boolean
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes a percent-encoded text to well-formed UTF-8. Throws S3Error `InvalidURI`. */
export function decodePath(text: string): string {
  try {
    // Most have ASCII characters only.
    if (/^[\x21-\x24\x26-\x7e]*$/.test(text)) return text
    return decoder.decode(bytesOf(text))
  } catch {
    throw new S3Error('InvalidURI')
  }
}

/** The bytes of a percent-encoded text of Latin-1 characters, as Node reads them. Throws if an escape is malformed. */
function bytesOf(text: string): Buffer {
  if (/%(?![\da-fA-F]{2})/.test(text)) throw new S3Error('InvalidURI')
  return Buffer.from(
    text.replace(/%([\da-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}

/**
 * Reads the target of a request. `host` is that of MEDIABUCKET_S3_HOST: the name before it is the bucket. Throws S3Error
 * `InvalidURI`.
 */
export function targetOf(request: IncomingMessage, host: string | null): RequestTarget {
  const { url = '/', headers } = request
  // A request target in absolute form.
  const whole = url.startsWith('/') ? url : url.replace(/^[a-z]+:\/\/[^/?#]*/i, '') || '/'
  const mark = whole.indexOf('?')
  const path = mark === -1 ? whole : whole.slice(0, mark)
  const query = new URLSearchParams(mark === -1 ? '' : whole.slice(mark + 1))
  const virtual = host === null ? null : bucketOfHost(headers.host ?? '', host)
  const slash = path.indexOf('/', 1)
  const bucket = virtual ?? decodePath(slash === -1 ? path.slice(1) : path.slice(1, slash))
  const key = virtual === null ? (slash === -1 ? '' : path.slice(slash + 1)) : path.slice(1)
  return {
    ...{ path, query, isVirtual: virtual !== null },
    bucket: bucket === '' ? null : bucket,
    key: key === '' ? null : decodePath(key),
  }
}

/** The labels in front of the host of the service; null if it is another one. */
function bucketOfHost(sent: string, host: string): string | null {
  const name = sent.replace(/:\d+$/, '').toLowerCase()
  return (name.endsWith(`.${host}`) && name.slice(0, -host.length - 1)) || null
}
