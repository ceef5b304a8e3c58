import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/fault.ts'
import { defaultExpiry, parseExpiry } from '../../core/item-expiry.ts'
import type { IncomingFile, IncomingFiles } from '../../media/store-media.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { dispositionFilename, parseParameters } from '../headers/parameters.ts'
import { countHeader } from '../headers/raw-headers.ts'

/** The name and the type of a raw body, as sent. Throws Fault where the name is malformed. */
export function rawFileHeaders({
  headers,
}: IncomingMessage): Pick<IncomingFile, 'filename' | 'declaredType'> {
  const header = headers['content-disposition']
  const disposition = header === undefined ? null : parseParameters(header)
  const filename = disposition === null ? undefined : dispositionFilename(disposition)
  if (header !== undefined && filename === undefined)
    throw new Fault(
      'filename-malformed',
      'Content-Disposition must have the form: attachment; filename="name.ext"; filename*=UTF-8\'\'name.ext',
    )
  return { filename: filename ?? null, declaredType: headers['content-type'] ?? null }
}

/** Yields a raw body as one file (docs/interface.md U3). Throws before the body is read where its name is malformed. */
export const readRawFile = (request: IncomingMessage, readBody: BodyReader): IncomingFiles =>
  yieldFile({ ...rawFileHeaders(request), body: readBody(request) })

async function* yieldFile(file: IncomingFile): AsyncGenerator<readonly IncomingFile[]> {
  yield [file]
}

/** A string of RFC 9651, as the draft requires, or the bare token that most clients send. */
const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])+)"$/
const bare = /^[\w!#$%&'*+.^`|~:/=@-]+$/

const maxLength = 255

/** Returns the key of an Idempotency-Key header; quoted and bare forms are the same key (docs/interface.md I1). Throws Fault. */
export function parseIdempotencyKey(header: string): string {
  const key = quoted.exec(header)?.[1]?.replace(/\\(.)/g, '$1') ?? bare.exec(header)?.[0]
  if (key === undefined || key.length > maxLength)
    throw new Fault(
      'idempotency-key-malformed',
      `Idempotency-Key must be one quoted string, or one word, of 1 to ${maxLength} visible ASCII characters.`,
    )
  return key
}

const name = 'mediabucket-expires-at'

/**
 * When the items of an upload expire (docs/interface.md E1): milliseconds since 1970, null for never. Throws Fault `request-malformed`.
 * A request that can be a repetition (`isKeyed`) may state a time that has passed since the first one.
 */
export function itemExpiryOf(
  request: IncomingMessage,
  { itemDays }: { readonly itemDays: number | null },
  isKeyed: boolean,
): number | null {
  const header = request.headers[name]
  const now = Date.now()
  if (header === undefined) return defaultExpiry(itemDays, now)
  const expiry =
    countHeader(request, name) > 1 ? undefined : parseExpiry(header.toString(), isKeyed ? 0 : now)
  if (expiry === undefined)
    throw new Fault(
      'request-malformed',
      'Mediabucket-Expires-At must be one time of RFC 3339 in the future, such as 2030-01-31T12:00:00Z.',
    )
  return expiry
}
