import type { CallOptions } from './client-options.ts'
import { sendJson } from './json.ts'
import { pause } from './retry.ts'
import type { SendSettings } from './send.ts'
import {
  arrayOf,
  type Check,
  countOrNull,
  type Fact,
  fact,
  flag,
  objectOf,
  parse,
  recordOf,
  text,
  textOrNull,
} from './shape.ts'
import type { Endpoints } from './urls.ts'

/** Who made a change, or read bytes. */
export interface AuditActor {
  /** `client`, `operator` (with the command line) or `service`. */
  readonly kind: string
  readonly token_id: string | null
  readonly subject: string | null
  readonly address: string | null
  readonly request_id: string | null
}

/** An event of the audit log, as on the wire. */
export interface AuditEvent {
  readonly uid: string
  /** RFC 3339, UTC. */
  readonly time: string
  /** What happened, such as `upload` or `token-create`. */
  readonly action: string
  /** The name of the bucket, also of a deleted one; null if it is about no bucket. */
  readonly bucket: string | null
  /** The id of the item, the token, the key or the webhook that it is about. */
  readonly target: string | null
  readonly name: string | null
  /** Bytes. */
  readonly size: number | null
  readonly detail: Readonly<Record<string, Fact>>
  readonly actor: AuditActor
}

/** Selects events. */
export interface EventOptions extends CallOptions {
  readonly since?: Date | undefined
  readonly until?: Date | undefined
  /** The name of a bucket, also of a deleted one. */
  readonly bucket?: string | undefined
  /** The id of an item. */
  readonly item?: string | undefined
  /** The id of a token. */
  readonly token?: string | undefined
  readonly action?: string | undefined
  /** Goes on with events as they are recorded, each once, until the signal is aborted, or some seconds after `until`. Default: false. */
  readonly follow?: boolean | undefined
}

const actorShape: Check<AuditActor> = objectOf<AuditActor>({
  kind: text,
  token_id: textOrNull,
  subject: textOrNull,
  address: textOrNull,
  request_id: textOrNull,
})

const eventShape: Check<AuditEvent> = objectOf<AuditEvent>({
  uid: text,
  time: text,
  action: text,
  bucket: textOrNull,
  target: textOrNull,
  name: textOrNull,
  size: countOrNull,
  detail: recordOf(fact),
  actor: actorShape,
})

interface EventPage {
  readonly data: readonly AuditEvent[]
  readonly next_cursor: string
  readonly has_more: boolean
}

const pageShape: Check<EventPage> = objectOf<EventPage>({
  data: arrayOf(eventShape),
  next_cursor: text,
  has_more: flag,
})

/** Milliseconds between two requests for new events. */
const followInterval = 1_000

/** Milliseconds after which an event of a moment has been stored. */
const longestDelay = 3_000

/** Iterates over the selected events of the audit log, earliest first. */
export async function* iterateEvents(
  settings: SendSettings,
  endpoints: Endpoints,
  { since, until, bucket, item, token, action, follow = false, signal }: EventOptions,
): AsyncGenerator<AuditEvent, void, undefined> {
  const given = {
    ...{ since: since?.toISOString(), until: until?.toISOString(), bucket, item, token, action },
    limit: '500',
  }
  const parameters = new URLSearchParams(
    Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
  const end = (until?.getTime() ?? Number.POSITIVE_INFINITY) + longestDelay
  for (;;) {
    const isLast = Date.now() > end
    const page: EventPage = await sendJson(settings, {
      url: endpoints.events(parameters),
      signal,
      what: 'a list of events',
      read: (value) => parse('a list of events', pageShape, value),
    })
    yield* page.data
    parameters.set('after', page.next_cursor)
    if (page.has_more) continue
    if (!follow || isLast) return
    await pause(followInterval, signal)
  }
}
