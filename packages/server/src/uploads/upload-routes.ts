import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { DisplayString, ParseError, parseDictionary, Token } from 'structured-headers'
import { urlsOfBucket } from '../core/bucket-pictures.ts'
import { Fault } from '../core/faults.ts'
import { focusTextRule, parseFocusText } from '../core/focus.ts'
import { type Labels, labelRule, parseLabels, parseLabelText } from '../core/item-labels.ts'
import { listingPaths } from '../core/page.ts'
import { maxFileSizeOf, requireFileSize } from '../core/quotas.ts'
import { parseExpiry } from '../core/times.ts'
import type { Caller } from '../http/authorizer.ts'
import type { BodyReader } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { countHeader, dispositionFilename, parseParameters } from '../http/headers.ts'
import { parseIdempotencyKey } from '../http/idempotency-key.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import { mediaObjectOf } from '../items/item-operations.ts'
import type { Grant } from '../storage/catalog/records.ts'
import type { IncomingFile, IncomingFiles, Stored, StoreOperations } from './commit.ts'
import {
  malformedForm,
  maxPartOverhead,
  type Part,
  readFieldName,
  readFileHeaders,
  readParts,
} from './form-parts.ts'
import { defaultExpiry, type SentFile, statedExpiry } from './new-items.ts'
import { resumed } from './received-files.ts'
import type { RequestKey } from './reservations.ts'
import * as openapi from './upload-routes.openapi.ts'

/** `POST /api/media`: stores all files of the request or none (docs/interface.md, Upload). */
export function uploadRoutes(http: HttpContext, operations: StoreOperations): readonly Route[] {
  const { authorize, readBody, readWholeBody, metrics, urls, settings } = http
  const { maxFileSize, inlineSize } = settings
  /** Larger files are streamed. Bytes. */
  const smallFileSize = Math.min(inlineSize, maxFileSize)

  async function storeForm(request: IncomingMessage, caller: Caller, length: number): Promise<Stored> {
    if (length > maxFormLength(maxFileSize)) throw fileTooLarge(maxFileSize)
    const largest = maxFileSizeOf(caller, maxFileSize)
    if (length > maxFormLength(largest)) requireFileSize(caller, largest + 1)
    const key = requestKey(request, caller)
    return await operations.storeItems(caller, readFormFiles(request, readBody, headerFacts(request)), {
      by: caller.actor,
      key,
      expiresAt: itemExpiryOf(request, caller, key !== null),
      declaredBytes: minFileBytes(length),
      atMost: null,
    })
  }

  async function storeRawBody(request: IncomingMessage, caller: Caller, length: number): Promise<Stored> {
    if (length > maxFileSize) throw fileTooLarge(maxFileSize)
    requireFileSize(caller, length)
    const key = requestKey(request, caller)
    const options = { by: caller.actor, key, expiresAt: itemExpiryOf(request, caller, key !== null) }
    const sent = rawFileHeaders(request)
    // With `Expect` the client sends the body only if the quota allows it, which storeItems checks first (U11).
    if (length > 0 && length <= smallFileSize && request.headers.expect === undefined) {
      // A stream or an async generator would cost more than storing a small file.
      const bytes = await readWholeBody(request)
      // Null if the memory for bodies is used up.
      if (bytes !== null) return await operations.storeSmallFile(caller, bytes, sent, options)
    }
    return await operations.storeItems(caller, [[{ sent, body: readBody(request) }]], {
      ...options,
      declaredBytes: length,
      atMost: request.headers['content-length'] === undefined ? null : length,
    })
  }

  async function store(exchange: Exchange): Promise<Reply> {
    const { request } = exchange
    const { headers } = request
    metrics.countActiveUpload(exchange.response)
    const caller = await authorize(exchange, 'media:write')
    if (headers['content-encoding'] !== undefined)
      throw new Fault('content-coding-unsupported', 'Send the file without Content-Encoding.')
    refusePartOfFile(headers)
    // Node keeps the first one, which may not be the one that describes the body.
    if (countHeader(request, 'content-type') > 1)
      throw new Fault('request-malformed', 'The request has more than one Content-Type header.')
    const length = Number(headers['content-length'] ?? 0)
    const { items } = await (isMultipartForm(headers['content-type'] ?? '')
      ? storeForm(request, caller, length)
      : storeRawBody(request, caller, length))
    const described = items.map((item) => mediaObjectOf(urlsOfBucket(urls, caller), item))
    const [first, ...others] = described
    const caching = { 'cache-control': 'private, no-cache' }
    if (!first || others.length > 0) return { status: 201, headers: caching, json: { data: described } }
    const location = `${urls.baseUrl}/api/media/${first.id}`
    return { status: 201, headers: { ...caching, location }, json: first }
  }

  // JSON and text are files too (U3).
  const options = { readsBody: true, kind: 'upload' } as const
  return listingPaths.map((path) => route('POST', path, openapi.storeMedia, store, options))
}

/** Throws Fault `request-malformed` for a part of a file, which would be stored as a whole one (docs/interface.md U9). */
function refusePartOfFile(headers: IncomingHttpHeaders): void {
  for (const name of ['Content-Range', 'Tus-Resumable'])
    if (headers[name.toLowerCase()] !== undefined)
      throw new Fault(
        'request-malformed',
        `A request with ${name} has a part of a file. Send the whole file, or upload it in parts by tus at /api/uploads.`,
      )
}

/** The idempotency key of the request, null without one. Throws Fault where it is malformed. */
export function requestKey(
  { headers }: IncomingMessage,
  { tokenId }: Pick<Grant, 'tokenId'>,
): RequestKey | null {
  const header = headers['idempotency-key']
  return header === undefined ? null : { tokenId, key: parseIdempotencyKey(header.toString()) }
}

const fileTooLarge = (limit: number) =>
  new Fault('file-too-large', `A file may have at most ${limit} bytes.`, {
    members: { maximum: limit, unit: 'bytes' },
  })

/** The name and the type of a raw body (docs/interface.md U3). Throws Fault where the name is malformed. */
function rawFileHeaders(request: IncomingMessage): SentFile {
  const { headers } = request
  const header = headers['content-disposition']
  const disposition = header === undefined ? null : parseParameters(header)
  const filename = disposition === null ? undefined : dispositionFilename(disposition)
  if (header !== undefined && filename === undefined)
    throw new Fault(
      'filename-malformed',
      'Content-Disposition must have the form: attachment; filename="name.ext"; filename*=UTF-8\'\'name.ext',
    )
  return {
    filename: filename ?? null,
    declaredType: headers['content-type'] ?? null,
    ...headerFacts(request),
  }
}

/** What a request says about its items, besides their names and types. */
type SentFacts = Pick<SentFile, 'labels' | 'focus'>

/** Throws Fault `request-malformed`. */
const headerFacts = (request: IncomingMessage): SentFacts => ({
  labels: headerLabels(request),
  focus: headerFocus(request),
})

/**
 * Throws Fault `request-malformed` for the headers with facts about items in a request that states them elsewhere: ignored, they would be lost
 * (docs/interface.md U14).
 */
export function refuseFactHeaders({ headers }: IncomingMessage, place: string): void {
  for (const header of [labelsHeader, focusHeader, expiryHeader])
    if (headers[header] !== undefined)
      throw new Fault('request-malformed', `Send the value of ${header} in ${place}, not in a header.`)
}

const focusHeader = 'mediabucket-focus'

/** The focus in the header of a request (docs/interface.md M11); null without the header. Throws Fault `request-malformed`. */
function headerFocus(request: IncomingMessage): number | null {
  const header = request.headers[focusHeader]
  if (header === undefined) return null
  const focus = countHeader(request, focusHeader) > 1 ? undefined : parseFocusText(header.toString())
  if (focus === undefined)
    throw new Fault('request-malformed', `Mediabucket-Focus must be, once, ${focusTextRule}.`)
  return focus
}

const labelsHeader = 'mediabucket-labels'

/**
 * The labels in the header of a request (docs/interface.md U14): a dictionary of RFC 9651, or a JSON object in ASCII. Null without the header. Throws Fault
 * `request-malformed`.
 */
function headerLabels({ headers }: IncomingMessage): Labels | null {
  const header = headers[labelsHeader]
  if (header === undefined) return null
  const text = header.toString()
  const labels = /^\{[\x20-\x7e]*$/.test(text) ? parseLabelText(text) : parseDictionaryOfLabels(text)
  if (labels === undefined)
    throw new Fault(
      'request-malformed',
      `Mediabucket-Labels must be a dictionary such as album="42", user="7" with ${labelRule}.`,
    )
  return labels
}

const quotedStrings = /"(?:\\.|[^"\\])*"/g
const decimalValue = /=-?\d+\./

function parseDictionaryOfLabels(header: string): Labels | null | undefined {
  // The parser returns the integer 1 for the decimal 1.0.
  if (decimalValue.test(header.replace(quotedStrings, ''))) return undefined
  try {
    return parseLabels(
      [...parseDictionary(header)].map(([key, [value, parameters]]) => [
        key,
        parameters.size === 0 ? textOfItem(value) : undefined,
      ]),
    )
  } catch (error) {
    if (error instanceof ParseError) return undefined
    throw error
  }
}

/** Strings, display strings, tokens and integers. */
const textOfItem = (value: unknown): string | undefined =>
  typeof value === 'string' ||
  value instanceof Token ||
  value instanceof DisplayString ||
  Number.isInteger(value)
    ? String(value)
    : undefined

const expiryHeader = 'mediabucket-expires-at'

/**
 * When the items of an upload expire (docs/interface.md E1): milliseconds since 1970, null for never. Throws Fault `request-malformed`.
 * A request that can be a repetition (`isKeyed`) may state a time that has passed since the first one.
 */
function itemExpiryOf(
  request: IncomingMessage,
  { itemDays, limits }: Pick<Grant, 'itemDays' | 'limits'>,
  isKeyed: boolean,
): number | null {
  const header = request.headers[expiryHeader]
  const now = Date.now()
  if (header === undefined) return defaultExpiry(itemDays, now)
  const expiry =
    countHeader(request, expiryHeader) > 1 ? undefined : parseExpiry(header.toString(), isKeyed ? 0 : now)
  if (expiry === undefined)
    throw new Fault(
      'request-malformed',
      'Mediabucket-Expires-At must be one time of RFC 3339 in the future, such as 2030-01-31T12:00:00Z.',
    )
  return statedExpiry(expiry, limits, now)
}

/** Whether a Content-Type is multipart/form-data, even where its parameters are malformed. */
const isMultipartForm = (contentType: string): boolean =>
  /^[ \t]*multipart\/form-data(?![\w!#$%&'*+.^`|~-])/i.test(contentType)

/** RFC 2046, section 5.1.1: 1 to 70 of these characters; the last one must not be a space. */
const validBoundary = /^[\w'()+,\-./:=? ]{0,69}[\w'()+,\-./:=?]$/

/** Returns the boundary of a Content-Type. Throws Fault `form-malformed`. */
function parseBoundary(contentType: string): string {
  const boundary = parseParameters(contentType)?.parameters.get('boundary')
  if (boundary === undefined)
    throw malformedForm(
      'its Content-Type must have the form multipart/form-data; boundary=…, with one boundary',
    )
  if (!validBoundary.test(boundary))
    throw malformedForm(
      "its boundary must have 1 to 70 characters, each a letter, a digit, a space or one of '()+_,-./:=?, and must not end in a space",
    )
  return boundary
}

/** The most parts of a form, files and fields together. */
const maxParts = 1_000

/**
 * Yields the file parts of a form as they arrive, those that arrive together as one group, and skips its fields (docs/interface.md U1). Throws before the body is
 * read where the headers of the request are malformed.
 */
function readFormFiles(request: IncomingMessage, readBody: BodyReader, facts: SentFacts): IncomingFiles {
  const boundary = parseBoundary(request.headers['content-type'] ?? '')
  return readFilesBetween(boundary, readBody(request), { facts })
}

/**
 * Yields the files of a form with this boundary, with these facts, or those of its fields `labels` and `focus`. `minStreamed` is that of readParts.
 */
export async function* readFilesBetween(
  boundary: string,
  bytes: AsyncIterable<Uint8Array>,
  options: { readonly minStreamed?: number | undefined; readonly facts?: SentFacts } = {},
): AsyncGenerator<readonly IncomingFile[]> {
  let [hasFile, hasEmptyInput] = [false, false]
  let { facts = {} } = options
  const fields = new Set<string>()
  for await (const parts of readParts(bytes, boundary, maxParts, options.minStreamed)) {
    const files: IncomingFile[] = []
    for (const part of parts) {
      const sent = readFileHeaders(part.headers, boundary)
      if (sent === null) {
        const name = readFieldName(part.headers, boundary)
        if (!isFactName(name)) {
          await skipField(part.body)
          continue
        }
        if (fields.has(name) || hasFile || files.length > 0) throw malformedFact(name)
        fields.add(name)
        facts = { ...facts, [name]: await readFactField(name, part.body) }
        continue
      }
      const body = sent.filename === '' ? await bodyUnlessEmpty(part.body) : part.body
      if (body === null) hasEmptyInput = true
      else files.push({ sent: { ...sent, ...facts }, body })
    }
    if (files.length === 0) continue
    hasFile = true
    yield files
  }
  if (!hasFile)
    throw new Fault(
      'form-without-file',
      hasEmptyInput
        ? 'No file was chosen: the only file of the form has no name and no bytes.'
        : 'The form has no file; give a part a filename, as `curl -F file=@photo.png` does.',
    )
}

/**
 * Null if the body has no bytes. Browsers send an input in which no file is chosen as an empty file with an empty name (HTML, "constructing the
 * entry list").
 */
async function bodyUnlessEmpty(body: Part['body']): Promise<Part['body'] | null> {
  if (body instanceof Uint8Array) return body.byteLength === 0 ? null : body
  const chunks = body[Symbol.asyncIterator]()
  const { done, value } = await chunks.next()
  return done ? null : resumed([value], chunks)
}

/** The largest size of a field. Bytes. */
const maxFieldSize = 1_000_000

/** The length of the largest form. Bytes. */
const maxFormLength = (maxFileSize: number): number =>
  maxParts * (Math.max(maxFileSize, maxFieldSize) + maxPartOverhead) + maxPartOverhead

/** The size that the files of a form of this length have at least: all other parts are fields, as large as they may be. Bytes. */
const minFileBytes = (formLength: number): number =>
  Math.max(0, formLength - maxParts * (maxFieldSize + maxPartOverhead) - maxPartOverhead)

/** Bytes. More than labels can have. */
const maxFactField = 65_536

/** The fields of a form that say something about its files. `read` returns undefined for a malformed text. */
const factFields = {
  labels: { accepts: `a JSON object with ${labelRule}`, read: parseLabelText },
  focus: { accepts: focusTextRule, read: parseFocusText },
} as const satisfies Record<keyof SentFacts, object>

type FactName = keyof typeof factFields
const isFactName = (name: string | undefined): name is FactName =>
  name !== undefined && Object.hasOwn(factFields, name)

const malformedFact = (name: FactName) =>
  malformedForm(`a field named ${name} must be ${factFields[name].accepts}; it stands once, before the files`)

async function readFactField(name: FactName, field: Part['body']): Promise<Labels | number | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of field instanceof Uint8Array ? [field] : field) {
    size += chunk.byteLength
    if (size > maxFactField) throw malformedFact(name)
    // The memory of a chunk is freed when the next one is read.
    chunks.push(Uint8Array.from(chunk))
  }
  const fact = factFields[name].read(Buffer.concat(chunks).toString())
  if (fact === undefined) throw malformedFact(name)
  return fact
}

async function skipField(field: Part['body']): Promise<void> {
  let size = 0
  for await (const chunk of field instanceof Uint8Array ? [field] : field) {
    size += chunk.byteLength
    if (size > maxFieldSize)
      throw new Fault('body-too-large', `A field of a form may have at most ${maxFieldSize} bytes.`, {
        members: { maximum: maxFieldSize, unit: 'bytes' },
      })
  }
}
