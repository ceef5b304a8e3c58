import { Type } from 'typebox'
import { maxUsageLimit } from '../../core/usage-queries.ts'
import { BucketObject, closedObject, count, nullable, time } from './schemas.ts'

// The usage of buckets by day (docs/interface.md, Usage).

const Amount = (description: string) =>
  Type.Object(
    { items: count('The number of items.'), bytes: count('Their total size in bytes.') },
    { description, additionalProperties: false },
  )

/** What every usage of a day has. */
const usageMembers = {
  day: Type.String({ format: 'date', description: 'The day (UTC).' }),
  is_partial: Type.Boolean({ description: 'Whether the day has not ended: its figures still change.' }),
  items: count('The number of items at its end, without those in the trash.'),
  bytes: count('The total size of the items at its end in bytes, with those in the trash.'),
  added: Amount('What uploads and restored items have added.'),
  removed: Amount('What was deleted or has expired.'),
  downloaded_bytes: count('The bytes of items and variants that were sent.'),
  requests: Type.Object(
    {
      list: count('Requests for lists of items.'),
      download: count('Requests for bytes.'),
      upload: count('Requests that upload.'),
      other: count('All other requests.'),
    },
    { description: 'The requests by kind.', additionalProperties: false },
  ),
}

export const UsageObject = closedObject('Usage', 'The usage of a bucket on one day.', usageMembers)

/** The bucket of a token, as the token reads it. */
export const OwnBucketObject = closedObject('Bucket', 'The contents, the quota and the usage of a bucket.', {
  ...BucketObject.properties,
  usage_today: UsageObject,
})

const date = (description: string) =>
  Type.Optional(Type.String({ format: 'date', examples: ['2026-11-01'], description }))

export const UsageQuery = Type.Object({
  from: date('The first day (UTC), 399 days ago at the earliest; by default 29 days before `to`.'),
  to: date('The last day (UTC); by default today.'),
})

export const UsageListQuery = Type.Object({
  day: date('The day (UTC), 399 days ago at the earliest; by default today.'),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxUsageLimit,
      default: maxUsageLimit,
      examples: [50],
      description: 'The largest number of buckets in the response.',
    }),
  ),
  after: Type.Optional(
    Type.String({
      examples: ['kXk2mP0vQ3xLMTIwMw'],
      description: 'The `next_cursor` of the previous response.',
    }),
  ),
})

export const BucketUsage = closedObject('BucketUsage', 'The usage of a bucket by day.', {
  bucket: Type.String({ description: 'The name of the bucket.' }),
  data: Type.Array(UsageObject, { description: 'A usage for each day, the earliest day first.' }),
})

export const ServiceUsage = closedObject('ServiceUsage', 'The usage of all buckets on a day.', {
  data: Type.Array(
    closedObject('UsageOfBucket', 'The usage of a bucket on a day.', {
      bucket: Type.String({ description: 'The name of the bucket.' }),
      deleted_at: nullable(time('When the bucket was deleted, in UTC; null for a bucket that exists.')),
      ...usageMembers,
    }),
    { description: 'The usage of some buckets, by name.' },
  ),
  next_cursor: nullable(
    Type.String({ description: 'The cursor after the last bucket; null if none follow.' }),
  ),
})
