import type { CallOptions, GetOptions } from './client-options.ts'
import { AnswerError, RedirectError } from './errors.ts'
import { createLink } from './links.ts'
import { withTimeout } from './responses.ts'
import { type SendSettings, send } from './send.ts'
import { type Endpoints, itemIdIn, mediaUrlOf } from './urls.ts'

/**
 * Fetches the bytes of an item. No other origin receives the token, so bytes of a private bucket that are at another origin are
 * fetched by a signed URL that the service creates. Those of a public bucket need no further request.
 */
export async function getBytes(
  settings: SendSettings,
  endpoints: Endpoints,
  reference: string | URL,
  options: GetOptions,
): Promise<Response> {
  const { resumeFrom, firstBytes, withToken = true } = options
  if (resumeFrom !== undefined && !(Number.isSafeInteger(resumeFrom.offset) && resumeFrom.offset > 0))
    throw new TypeError('resumeFrom.offset must be a number of bytes from 1')
  if (firstBytes !== undefined && !(Number.isSafeInteger(firstBytes) && firstBytes > 0))
    throw new TypeError('firstBytes must be a number of bytes from 1')
  if (resumeFrom !== undefined && firstBytes !== undefined)
    throw new TypeError('resumeFrom and firstBytes exclude each other')
  const url = mediaUrlOf(reference, endpoints.bytes)
  try {
    return await fetchBytes(settings, url, options)
  } catch (error) {
    const link =
      withToken && mayNeedLink(error, endpoints.origin)
        ? await linkTo(settings, endpoints, url, options)
        : null
    if (link === null) throw error
    return await fetchBytes(settings, link, options)
  }
}

const fetchBytes = (
  settings: SendSettings,
  url: string,
  { signal, resumeFrom, firstBytes, withToken }: GetOptions,
): Promise<Response> =>
  send(settings, {
    method: 'GET',
    url,
    headers: {
      ...(resumeFrom && { range: `bytes=${resumeFrom.offset}-`, 'if-range': resumeFrom.etag }),
      ...(firstBytes !== undefined && { range: `bytes=0-${firstBytes - 1}` }),
    },
    mayLeaveOrigin: true,
    withToken,
    repeatable: true,
    signal,
    read: async (response, timer) => withTimeout(response, timer),
  })

/** Whether an item may exist whose bytes another origin sends only by a signed URL. Browsers hide the target of a redirect. */
const mayNeedLink = (error: unknown, origin: string): boolean =>
  error instanceof AnswerError
    ? error.status === 404 && new URL(error.url).origin !== origin
    : error instanceof RedirectError && error.location === null

/** Null if the service has no link for the URL. */
async function linkTo(
  settings: SendSettings,
  endpoints: Endpoints,
  url: string,
  { signal }: CallOptions,
): Promise<string | null> {
  const { pathname, searchParams } = new URL(url)
  const id = itemIdIn(pathname)
  if (id === null) return null
  const width = searchParams.get('w') ?? searchParams.get('width')
  // A link for one size names it; one for all sizes is followed by a width (docs/interface.md H5).
  const variant = width === null ? (searchParams.get('variant') ?? undefined) : '*'
  const download = searchParams.has('download') || undefined
  try {
    const link = await createLink(settings, endpoints, id, { variant, download, signal })
    return width === null ? link.url : `${link.url}&w=${encodeURIComponent(width)}`
  } catch (error) {
    // Only a rejected token (401) is reported here. For other errors, the caller throws the first error, which has more detail.
    if (error instanceof AnswerError && error.status !== 401) return null
    throw error
  }
}
