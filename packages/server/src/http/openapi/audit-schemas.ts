import { Type } from 'typebox'
import { auditActions } from '../../storage/catalog/audit/audit-events.ts'
import { limit } from './parameters.ts'
import { closedObject, count, nullable, time } from './schemas.ts'

// The schemas of requests and responses with the audit log.

const action = Type.String({ enum: Object.keys(auditActions), description: 'What happened.' })

export const EventListQuery = Type.Object({
  limit: limit('events'),
  after: Type.Optional(Type.String({ description: 'The `next_cursor` of the previous response.' })),
  since: Type.Optional(Type.String({ format: 'date-time', description: 'Events from this time on.' })),
  until: Type.Optional(Type.String({ format: 'date-time', description: 'Events before this time.' })),
  bucket: Type.Optional(Type.String({ description: 'Events of the buckets that have, or had, this name.' })),
  item: Type.Optional(Type.String({ description: 'Events of this item.' })),
  token: Type.Optional(Type.String({ description: 'Events of requests with this token.' })),
  action: Type.Optional(action),
})

const AuditActor = closedObject('AuditActor', 'Who made a change, or read bytes.', {
  kind: Type.Unsafe<'client' | 'operator' | 'service'>({
    type: 'string',
    enum: ['client', 'operator', 'service'],
    description: 'A client with a token, an operator with the command line, or the service itself.',
  }),
  token_id: nullable(Type.String()),
  subject: nullable(
    Type.String({ description: 'The user of an issuer, or the user of the operating system.' }),
  ),
  address: nullable(Type.String({ description: 'The IP address of a client.' })),
  request_id: nullable(Type.String()),
})

const AuditEventObject = closedObject('AuditEvent', 'An event of the audit log.', {
  uid: Type.String({ description: 'Unique in its catalog.' }),
  time: time('When it happened.'),
  action,
  bucket: nullable(Type.String({ description: 'The name of the bucket, also of a deleted one.' })),
  target: nullable(
    Type.String({ description: 'The id of the item, the token, the key or the webhook that it is about.' }),
  ),
  name: nullable(
    Type.String({ description: 'The name of the file, the token or the bucket, if it is known.' }),
  ),
  size: nullable(count('Of the file. Bytes.')),
  detail: Type.Unsafe<Readonly<Record<string, unknown>>>({
    type: 'object',
    additionalProperties: true,
    description: 'Facts of the event.',
  }),
  actor: AuditActor,
})

export const EventList = closedObject('EventList', 'Events of the audit log, earliest first.', {
  data: Type.Array(AuditEventObject),
  next_cursor: Type.String({
    description: 'The `after` of the next request, also for events that are recorded later.',
  }),
  has_more: Type.Boolean({ description: 'Whether there were further events at the time of this response.' }),
})
