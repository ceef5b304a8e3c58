import { Type } from 'typebox'
import { bucketOrders } from '../../core/bucket-queries.ts'
import { maxTypes, typePattern } from '../../core/quotas.ts'
import { maxDays } from '../../core/times.ts'
import { limit } from './parameters.ts'
import { BucketObject, closedObject, count, nullable, time } from './schemas.ts'
import { CreatedToken, NewTokenBody } from './token-schemas.ts'

// The schemas of requests and responses with buckets, for tokens of the service.

const name = Type.String({
  pattern: '^[a-z0-9][a-z0-9-]{0,62}$',
  description: 'The name of the bucket.',
  examples: ['customer-42'],
})

export const BucketParams = Type.Object({ name })

export const BucketListQuery = Type.Object({
  limit: limit('buckets'),
  after: Type.Optional(
    Type.String({
      examples: ['kXk2mP0vQ3xLMTIwMw'],
      description: 'The `next_cursor` of the previous response.',
    }),
  ),
  order: Type.Optional(
    Type.Unsafe<(typeof bucketOrders)[number]>({
      type: 'string',
      enum: [...bucketOrders],
      default: 'name',
      examples: ['bytes'],
      description:
        'The order: by name, by creation with the oldest first, or by bytes or items with the most first. The other four are the reverse.',
    }),
  ),
  name: Type.Optional(
    Type.String({
      examples: ['customer-'],
      description: 'The first characters of the names; without it, all buckets are listed.',
    }),
  ),
})

export const BucketRemovalQuery = Type.Object({
  items: Type.Optional(
    Type.Unsafe<'delete'>({
      type: 'string',
      enum: ['delete'],
      examples: ['delete'],
      description: 'Required to delete a bucket that has items, also in its trash.',
    }),
  ),
})

const managedMembers = {
  ...BucketObject.properties,
  created_at: time('The time of creation, in UTC.'),
}

export const ManagedBucket = closedObject(
  'ManagedBucket',
  'The contents, the quota and the settings of a bucket.',
  managedMembers,
)

export const BucketList = closedObject('BucketList', 'Buckets, and totals of all buckets of the selection.', {
  data: Type.Array(ManagedBucket, { description: 'The buckets in the requested order.' }),
  totals: closedObject('BucketTotals', 'Of all buckets that `name` selects, in the same state.', {
    buckets: count('The number of buckets.'),
    items: count('Their items. Those that have expired count until they are removed.'),
    bytes: count('Their bytes, with those in their trashes.'),
  }),
  next_cursor: nullable(
    Type.String({ description: 'The value of `after` for the next buckets; null if there are none.' }),
  ),
})

const limitOf = (what: string) =>
  nullable(Type.Integer({ minimum: 0, description: `The limit of ${what}; null for none.` }))
const {
  private: isPrivate,
  signed_pages: signedPages,
  public_keys: publicKeys,
  public_list: publicList,
  url_uploads: urlUploads,
  variants,
  public_variants: publicVariants,
  crop,
  remove_metadata: removeMetadata,
} = BucketObject.properties

const settingMembers = {
  max_items: Type.Optional(limitOf('items')),
  max_bytes: Type.Optional(limitOf('bytes')),
  max_file_size: Type.Optional(
    nullable(
      Type.Integer({
        minimum: 1,
        description: 'The limit of a file in bytes; null for that of the service.',
      }),
    ),
  ),
  types: Type.Optional(
    nullable(
      Type.Array(Type.String({ pattern: typePattern }), {
        ...{ minItems: 1, maxItems: maxTypes },
        description: 'The types that files may have, such as `image/png` or `image/*`; null for all.',
      }),
    ),
  ),
  trash_days: Type.Optional(
    nullable(
      Type.Integer({
        ...{ minimum: 0, maximum: maxDays },
        description: 'The days for which deleted items can be restored; 0 or null for no trash.',
      }),
    ),
  ),
  item_days: Type.Optional(
    nullable(
      Type.Integer({
        ...{ minimum: 1, maximum: maxDays },
        description: 'The days after which new items expire; null if they do not.',
      }),
    ),
  ),
  private: Type.Optional(isPrivate),
  signed_pages: Type.Optional(signedPages),
  public_keys: Type.Optional(publicKeys),
  public_list: Type.Optional(publicList),
  url_uploads: Type.Optional(urlUploads),
  variants: Type.Optional(variants),
  public_variants: Type.Optional(publicVariants),
  crop: Type.Optional(crop),
  remove_metadata: Type.Optional(removeMetadata),
  keep_taken_at: Type.Optional(
    Type.Boolean({
      description:
        'Whether media objects have the time at which a picture was taken although its metadata is removed. Sent together with `remove_metadata`.',
    }),
  ),
}

export const NewBucketBody = Type.Object(
  {
    name,
    ...settingMembers,
    token: Type.Optional(nullable(NewTokenBody)),
  },
  {
    title: 'NewBucket',
    description: 'The name of a new bucket, its settings, and its first token.',
    additionalProperties: false,
  },
)

export const BucketSettingsBody = Type.Object(settingMembers, {
  title: 'BucketSettings',
  description: 'The settings that are changed.',
  additionalProperties: false,
})

export const CreatedBucket = closedObject('CreatedBucket', 'A new bucket, with its first token.', {
  ...managedMembers,
  token: nullable(CreatedToken),
})
