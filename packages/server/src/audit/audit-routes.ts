import { isItemId } from '../core/ids.ts'
import { createParameterReader, oneOf, readCursor, readLimit, timeShape } from '../core/queries.ts'
import { parseTimestamp } from '../core/times.ts'
import { isTokenId } from '../core/token-ids.ts'
import { requireScope } from '../core/token-rules.ts'
import type { HttpContext } from '../http/context.ts'
import { createSerializer } from '../http/dispatcher.ts'
import { noStore } from '../http/headers.ts'
import { itemsText, ListTexts, listReply } from '../http/list-texts.ts'
import { EventList } from '../http/openapi/audit-schemas.ts'
import type { ValueOf } from '../http/openapi/schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import { type AuditAction, auditActions, isAuditAction } from '../storage/catalog/audit/audit-events.ts'
import type { LogReader, NamedEvent, NamedFilter } from './audit-operations.ts'
import * as openapi from './audit-routes.openapi.ts'

type EventObject = ValueOf<typeof EventList>['data'][number]

interface AuditParts extends Pick<HttpContext, 'authorizeService' | 'tickQueue'> {
  readonly reader: LogReader
  readonly serialize: ReturnType<typeof createSerializer>
}

/** `GET /api/audit` (docs/interface.md Y9). */
export function auditRoutes(
  { authorizeService, tickQueue }: HttpContext,
  reader: LogReader,
): readonly Route[] {
  const serialize = createSerializer({ schema: EventList.properties.data })
  const parts = { authorizeService, tickQueue, reader, serialize }
  return [route('GET', '/api/audit', openapi.listEvents, (exchange) => listEvents(parts, exchange))]
}

async function listEvents(
  { authorizeService, tickQueue, reader, serialize }: AuditParts,
  exchange: Exchange,
): Promise<Reply> {
  const caller = await authorizeService(exchange, 'buckets:manage')
  // Events have the names of files.
  requireScope(caller, 'media:read')
  const { after, limit, ...filter } = parseEventListQuery(exchange.query)
  await tickQueue.next(caller.tokenId)
  const batch = await reader.read(filter, after, limit)
  const list = new ListTexts(
    (events: readonly NamedEvent[]) => itemsText(serialize(events.map(eventObject))),
    () => tickQueue.next(caller.tokenId),
  )
  const added = await list.add(batch.events)
  const isFull = added < batch.events.length
  // The cursor after those that had room.
  const next = isFull ? (await reader.read(filter, after, added)).next : batch.next
  return listReply(noStore, list.texts, { next_cursor: next, has_more: isFull || batch.hasMore })
}

const actionAccepts = oneOf(Object.keys(auditActions))

/** The query of `GET /api/audit`. Throws Fault `parameter-malformed`. */
function parseEventListQuery(
  values: Readonly<Record<string, unknown>>,
): NamedFilter & { readonly limit: number; readonly after: string | null } {
  const reader = createParameterReader(values)
  const { read } = reader
  const anyText = (text: string) => text
  const query = {
    limit: readLimit(reader),
    after: readCursor(reader),
    since: read('since', null, timeShape, parseTimestamp),
    until: read('until', null, timeShape, parseTimestamp),
    bucket: read<string | null>('bucket', null, 'the name of one bucket', anyText),
    target: read<string | null>('item', null, 'the id of one item', (text) => (isItemId(text) ? text : null)),
    tokenId: read<string | null>('token', null, 'the id of one token', (text) =>
      isTokenId(text) ? text : null,
    ),
    action: read<AuditAction | null>('action', null, actionAccepts, (text) =>
      isAuditAction(text) ? text : null,
    ),
  }
  reader.finish()
  return query
}

const eventObject = ({
  uid,
  time,
  action,
  bucket,
  target,
  name,
  size,
  detail,
  by,
}: NamedEvent): EventObject => ({
  ...{ uid, time: new Date(time).toISOString(), action, bucket, target, name, size, detail },
  actor: {
    kind: by.kind,
    token_id: by.tokenId,
    subject: by.subject,
    address: by.address,
    request_id: by.requestId,
  },
})
