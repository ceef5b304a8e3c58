import { Type } from 'typebox'
import { BucketObject, closedObject, count } from './schemas.ts'

// The usage of buckets by day (docs/interface.md, Usage).

const Amount = (description: string) =>
  Type.Object(
    { items: count('The number of items.'), bytes: count('Their total size in bytes.') },
    { description, additionalProperties: false },
  )

/** What every usage of a day has. */
export const usageMembers = {
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
