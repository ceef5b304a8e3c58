import { ShapeError } from './errors.ts'
import { readText } from './responses.ts'
import { type Call, type SendSettings, send } from './send.ts'
import { arrayOf, type Check, objectOf, parse, textOrNull } from './shape.ts'
import type { UploadBody } from './transport.ts'
import { contentOfBytes } from './upload-content.ts'

/** A request whose response is JSON: a GET, if it names no method. */
interface JsonCall<T> extends Pick<Call<T>, 'url' | 'headers' | 'body' | 'signal' | 'onUncertain'> {
  readonly method?: Call<T>['method']
  /** The value to send as JSON. */
  readonly json?: unknown
  /** As in `Call`. Default: true for a GET, false for other methods. */
  readonly repeatable?: boolean
  /** The expected value in errors, such as `a page`. */
  readonly what: string
  readonly read: (value: unknown) => T
}

/** Accepts JSON only: a proxy with its own sign-in may redirect a request that accepts HTML to its sign-in page. */
export const acceptJson = { accept: 'application/json, application/problem+json' }

/** Sends a request and reads the JSON of its response. Rejects with a `ShapeError` for a body that is not JSON. */
export async function sendJson<T>(settings: SendSettings, call: JsonCall<T>): Promise<T> {
  return (await sendTagged(settings, call)).value
}

/** As `sendJson`, with the `ETag` of the response; null if it has none. */
export function sendTagged<T>(
  settings: SendSettings,
  { what, read, json, method = 'GET', repeatable = method === 'GET', ...call }: JsonCall<T>,
): Promise<{ readonly value: T; readonly etag: string | null }> {
  return send(settings, {
    ...call,
    ...(json === undefined ? {} : { body: jsonBody(json) }),
    method,
    headers: {
      ...acceptJson,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...call.headers,
    },
    repeatable,
    async read(response, timer) {
      const text = await readText(response, timer)
      const value = read(parseJson(what, text, response.headers.get('content-type')))
      return { value, etag: response.headers.get('etag') }
    },
  })
}

/** Iterates over a list whose pages name the cursor of the next one. `url` is that of the first page. */
export async function* followCursors<T>(
  settings: SendSettings,
  { url, what, item, signal }: { url: string; what: string; item: Check<T>; signal: AbortSignal | undefined },
): AsyncGenerator<T, void, undefined> {
  const shape = cursorPageOf(item)
  const next = new URL(url)
  for (let cursor: string | null = null; ; ) {
    const page: CursorPage<T> = await sendJson(settings, {
      url: next.href,
      signal,
      what,
      read: (value) => parse(what, shape, value),
    })
    yield* page.data
    if (page.next_cursor === null) return
    if (page.next_cursor === cursor)
      throw new ShapeError(what, 'next_cursor', 'must not be the cursor of the request')
    cursor = page.next_cursor
    next.searchParams.set('after', cursor)
  }
}

export interface CursorPage<T> {
  readonly data: readonly T[]
  readonly next_cursor: string | null
}

export const cursorPageOf = <T>(item: Check<T>): Check<CursorPage<T>> =>
  objectOf<CursorPage<T>>({ data: arrayOf(item), next_cursor: textOrNull })

/** The body of a request with a JSON value. */
export const jsonBody = (value: unknown): UploadBody => ({
  content: contentOfBytes(new TextEncoder().encode(JSON.stringify(value))),
  onProgress: undefined,
})

function parseJson(what: string, text: string, contentType: string | null): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ShapeError(
      what,
      '',
      `must be JSON, and is ${text === '' ? 'empty' : (contentType ?? 'of an unknown type')}`,
    )
  }
}
