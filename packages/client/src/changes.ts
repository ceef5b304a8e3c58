import type { CallOptions } from './client-options.ts'
import { sendJson } from './json.ts'
import type { ChangeType } from './list-rules.ts'
import { type Media, mediaShape } from './media.ts'
import { isTransient, pause } from './retry.ts'
import type { SendSettings } from './send.ts'
import { arrayOf, type Check, flag, objectOf, orNull, parse, text } from './shape.ts'
import type { Endpoints } from './urls.ts'

/** What happened to an item of the bucket, as on the wire. */
export interface Change {
  /** Continue after this change with it: `changes({ after: cursor })`. */
  readonly cursor: string
  /** Later versions of the service may have further types. */
  readonly type: ChangeType | (string & Record<never, never>)
  readonly item_id: string
  /** RFC 3339, UTC. The order of the changes is that in which they happened, whatever their times. */
  readonly changed_at: string
  /** The item as it is now; null if the bucket does not list it any more. */
  readonly item: Media | null
}

/** The options of an iteration over changes. */
export interface ChangesOptions extends CallOptions {
  /** Begins after this cursor: of a change, or of `latestCursor`. Default: with the changes that follow the call. */
  readonly after?: string | undefined
  /** Whether the URLs of a private bucket are signed. Default: as the bucket is set. */
  readonly urls?: 'plain' | 'signed' | undefined
  /** Changes per request, from 1 to 500. Default: 100. */
  readonly batchSize?: number | undefined
  /** Seconds for which a request waits for a change, from 1 to 60. Default: 30, or less with a shorter timeout of the client. */
  readonly wait?: number | undefined
  /** Called with each response, also with one without changes: the service can be reached. */
  readonly onResponse?: (() => void) | undefined
}

interface ChangeList {
  readonly data: readonly Change[]
  readonly next_cursor: string
  readonly has_more: boolean
}

const listShape: Check<ChangeList> = objectOf<ChangeList>({
  data: arrayOf(
    objectOf<Change>({
      cursor: text,
      type: text,
      item_id: text,
      changed_at: text,
      item: orNull(mediaShape),
    }),
  ),
  next_cursor: text,
  has_more: flag,
})

const fetchChanges = (
  settings: SendSettings,
  endpoints: Endpoints,
  parameters: URLSearchParams,
  signal: AbortSignal | undefined,
): Promise<ChangeList> =>
  sendJson(settings, {
    url: endpoints.changes(parameters),
    signal,
    what: 'a list of changes',
    read: (value) => parse('a list of changes', listShape, value),
  })

/** Fetches the cursor of this moment. */
export const fetchLatestCursor = async (
  settings: SendSettings,
  endpoints: Endpoints,
  { signal }: CallOptions,
): Promise<string> =>
  (await fetchChanges(settings, endpoints, new URLSearchParams({ since: 'now' }), signal)).next_cursor

const defaultWait = 30
/** Milliseconds until a request is sent again after its last retry. */
const longestPause = 5_000

/** Iterates over changes without end. Each request waits for the next one, and one that failed temporarily is repeated. */
export async function* iterateChanges(
  settings: SendSettings,
  endpoints: Endpoints,
  { after, urls, batchSize, wait = defaultWait, onResponse, signal }: ChangesOptions,
): AsyncGenerator<Change, void, undefined> {
  // The service responds before the attempt times out.
  const seconds = Math.max(1, Math.min(wait, Math.floor(settings.timeout / 2_000)))
  const parameters = new URLSearchParams({ wait: `${seconds}` })
  if (urls !== undefined) parameters.set('urls', urls)
  if (batchSize !== undefined) parameters.set('limit', `${batchSize}`)
  let cursor =
    after ?? (await patiently(settings, signal, () => fetchLatestCursor(settings, endpoints, { signal })))
  for (;;) {
    parameters.set('after', cursor)
    const { data, next_cursor } = await patiently(settings, signal, () =>
      fetchChanges(settings, endpoints, parameters, signal),
    )
    onResponse?.()
    yield* data
    cursor = next_cursor
  }
}

/** Repeats a request as long as it fails temporarily, also after its retries: a follower outlives a restart of the service. */
async function patiently<T>(
  { retry }: SendSettings,
  signal: AbortSignal | undefined,
  request: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await request()
    } catch (error) {
      if (signal?.aborted || !isTransient(error)) throw error
      await pause(Math.min(retry.maxDelay, longestPause) * (0.5 + Math.random() / 2), signal)
    }
  }
}
