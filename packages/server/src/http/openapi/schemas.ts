import { maxAltText, maxCaption, maxIds, maxLabels, maxLabelValue } from '@mediabucket/client/rules'
import { type Static, type TSchema, Type } from 'typebox'
import type { FaultCode, FaultMembers } from '../../core/faults.ts'
import { pageSize } from '../../core/page.ts'
import { maxSizes, sizesRule } from '../../core/variant-sizes.ts'
import { type ItemChangeKind, itemChangeKinds } from '../../storage/catalog/items/item-changes.ts'

// The shapes that several schemas have.

/** A list of types, which code generators and serializers support better than a union. */
export const nullable = <T extends TSchema & { type: string }>(schema: T) =>
  Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] })

export const closedObject = <T extends Parameters<typeof Type.Object>[0]>(
  title: string,
  description: string,
  members: T,
) => Type.Object(members, { title, description, additionalProperties: false })

const url = (description: string) => Type.String({ format: 'uri', description })
export const count = (description: string) => Type.Integer({ minimum: 0, description })
export const time = (description: string) => Type.String({ format: 'date-time', description })
const pixels = (description: string) => nullable(Type.Integer({ minimum: 1, description }))

type Frozen<T> = T extends object ? { readonly [Name in keyof T]: Frozen<T[Name]> } : T

/** The values of a schema, which nothing changes. */
export type ValueOf<Schema extends TSchema> = Frozen<Static<Schema>>

// The schemas of responses. A schema with a title is a component of the OpenAPI document with that name.

const Link = closedObject('Link', 'One entry of `links`.', {
  url: nullable(url('Null where there is no such page.')),
  label: Type.String({
    description: 'A page number, `&laquo; Previous`, `Next &raquo;`, or `...` for a gap.',
  }),
  active: Type.Boolean({ description: 'True only for the number of the current page.' }),
})

export const Page = closedObject(
  'Page',
  'One page of a listing, in the shape of Laravel’s LengthAwarePaginator.',
  {
    current_page: Type.Integer({ minimum: 1, description: 'The requested page.' }),
    data: Type.Array(url('The URL of an item’s bytes.'), {
      maxItems: pageSize,
      description: 'The URLs of the items in the order of upload, oldest first.',
    }),
    first_page_url: url('The first page.'),
    from: nullable(
      Type.Integer({ minimum: 1, description: 'Position of the first item; null on an empty page.' }),
    ),
    last_page: Type.Integer({ minimum: 1, description: 'The number of pages; 1 for an empty bucket.' }),
    last_page_url: url('The last page.'),
    links: Type.Array(Link, {
      description: 'The previous page, one entry for each page number, the next page.',
    }),
    next_page_url: nullable(url('Null on the last page and after it.')),
    path: url('The URL of the listing without `page`.'),
    per_page: Type.Integer({ const: pageSize, description: 'Always 10.' }),
    prev_page_url: nullable(url('Null on the first page.')),
    to: nullable(
      Type.Integer({ minimum: 1, description: 'Position of the last item; null on an empty page.' }),
    ),
    total: count('The exact number of items, from the same snapshot as `data`.'),
  },
)

export const WrappedPage = closedObject('WrappedPage', 'A page inside `data`.', { data: Page })

const share = (description: string) => Type.Number({ minimum: 0, maximum: 1, description })
export const Focus = closedObject(
  'Focus',
  'The point of the picture that sizes keep that cut, as the picture is displayed; null for none (M11).',
  { x: share('Of the width, from the left.'), y: share('Of the height, from the top.') },
)

const VariantDimensions = closedObject('VariantDimensions', 'The dimensions of a variant in pixels.', {
  width: Type.Integer({ minimum: 1 }),
  height: Type.Integer({ minimum: 1 }),
})

export const MediaObject = closedObject('MediaObject', 'An item.', {
  id: Type.String({ description: 'Opaque and safe in URLs; at least 128 random bits.' }),
  url: url('The URL of the bytes. In a public bucket it grants access without a token.'),
  filename: nullable(Type.String({ description: 'The sanitized filename; null where none was sent.' })),
  content_type: Type.String({
    description:
      'The stored type: detected from the bytes, else declared, else that of the extension (U7). Texts that are not in UTF-8 have a `charset` (U13).',
  }),
  size: count('The size in bytes.'),
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'The SHA-256 of the bytes in hex.' }),
  created_at: time('The time of storage, in UTC.'),
  taken_at: nullable(
    Type.String({
      pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)?$`,
      description:
        'When the picture or the video was taken: what the clock of the camera showed, with its offset from UTC if the file states it; null where unknown (M9).',
    }),
  ),
  expires_at: nullable(time('When the item expires, in UTC; null if it does not (E1).')),
  width: pixels('The displayed width of a picture in pixels; null where unknown.'),
  height: pixels('The displayed height of a picture in pixels; null where unknown.'),
  thumbhash: nullable(
    Type.String({
      contentEncoding: 'base64',
      description:
        'A placeholder of the picture (ThumbHash); null until its first variant was rendered (V13).',
    }),
  ),
  duration: nullable(
    Type.Number({ minimum: 0, description: 'The duration of a video in seconds; null where unknown (V13).' }),
  ),
  alt_text: nullable(
    Type.String({
      description: 'A text that replaces the picture where it is not shown.',
      maxLength: maxAltText,
    }),
  ),
  caption: nullable(Type.String({ description: 'A text to show with the item.', maxLength: maxCaption })),
  labels: Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: { type: 'string', maxLength: maxLabelValue },
    maxProperties: maxLabels,
    description: 'The data of the app, as keys and values (M7).',
  }),
  path: nullable(
    Type.String({
      description: 'The path of the file within the folder that was uploaded; null for other files (U15).',
    }),
  ),
  focus: nullable(Focus),
  variants: Type.Unsafe<Record<string, string> | null>({
    type: ['object', 'null'],
    properties: {
      thumb: url('Fits into 400 × 400 pixels, unless MEDIABUCKET_VARIANTS states another size.'),
      medium: url('Fits into 1600 × 1600 pixels, unless MEDIABUCKET_VARIANTS states another size.'),
    },
    required: ['thumb', 'medium'],
    additionalProperties: url('The other sizes of MEDIABUCKET_VARIANTS.'),
    description:
      'The URLs of smaller pictures by the names of their sizes, as WebP or AVIF; null for types that have none (V3).',
  }),
  variant_sizes: Type.Unsafe<Record<string, ValueOf<typeof VariantDimensions>> | null>({
    type: ['object', 'null'],
    properties: { thumb: VariantDimensions, medium: VariantDimensions },
    required: ['thumb', 'medium'],
    additionalProperties: VariantDimensions,
    description:
      'The dimensions of the variants by the names of their sizes; null if there are no variants, or the width and height of the item are unknown.',
  }),
  key: Type.Optional(
    nullable(
      Type.String({
        description:
          'The key of the item for programs that speak S3; null if it has none. Only in lists with `key` or `keys` (K21).',
      }),
    ),
  ),
})

const labelChanges = Type.Unsafe<Record<string, string | null>>({
  type: 'object',
  additionalProperties: { type: ['string', 'null'], maxLength: maxLabelValue },
  description: 'The labels to set, and with null those to remove. Others stay as they are.',
})

export const ItemEditBody = closedObject('ItemEdit', 'Changes of an item: a JSON merge patch (RFC 7396).', {
  filename: Type.Optional(
    nullable(Type.String({ description: 'A name, which is sanitized as that of an upload (U8).' })),
  ),
  alt_text: Type.Optional(nullable(Type.String({ maxLength: maxAltText }))),
  caption: Type.Optional(nullable(Type.String({ maxLength: maxCaption }))),
  labels: Type.Optional(labelChanges),
  focus: Type.Optional(nullable(Focus)),
})

export const LabelBody = closedObject('LabelChanges', 'Labels for several items.', {
  ids: Type.Array(Type.String({ description: 'The id of an item.' }), {
    minItems: 1,
    maxItems: maxIds,
    description: 'Repeated ids count once.',
  }),
  labels: labelChanges,
})

export const MediaList = closedObject('MediaList', 'The items of one form, in the order sent.', {
  data: Type.Array(MediaObject),
})

export const ItemList = closedObject('ItemList', 'Items of the bucket, and where the list continues.', {
  data: Type.Array(MediaObject, { description: 'The items in the requested order.' }),
  next_cursor: nullable(
    Type.String({ description: 'Send it as `after` for the items that follow; null where none follow.' }),
  ),
})

const closed = { additionalProperties: false }
const linkOrNull = (description: string) => nullable(url(description))
const position = (description: string) => nullable(Type.Integer({ minimum: 1, description }))

export const NumberedItems = closedObject(
  'NumberedItems',
  'A numbered page of items of the bucket, in the form of Laravel’s resources.',
  {
    data: Type.Array(MediaObject, { description: 'The items in the requested order.' }),
    links: Type.Object(
      {
        first: url('The first page.'),
        last: linkOrNull('Null if the number of the last page is not known.'),
        prev: linkOrNull('Null on the first page.'),
        next: linkOrNull('Null on the last page and after it.'),
      },
      closed,
    ),
    meta: Type.Object(
      {
        current_page: Type.Integer({ minimum: 1 }),
        from: position('The position of the first item, from 1; null on a page without items.'),
        last_page: position('Null with a filter, except on the last page.'),
        path: url('The address of the list, without parameters.'),
        per_page: Type.Integer({ minimum: 1 }),
        to: position('The position of the last item; null on a page without items.'),
        total: nullable(
          Type.Integer({ minimum: 0, description: 'Null with a filter, except on the last page.' }),
        ),
      },
      closed,
    ),
  },
)

const id = Type.String({ description: 'The id of an item.' })

const Change = closedObject('Change', 'What happened to an item.', {
  cursor: Type.String({
    description:
      'Send it as `after` for the changes that follow. It does not identify the change: responses differ.',
  }),
  type: Type.Unsafe<ItemChangeKind | 'unknown'>({
    type: 'string',
    enum: [...Object.keys(itemChangeKinds), 'unknown'],
    description:
      '`trashed` and `restored` are moves to the trash and out of it. `removed` and `expired` are permanent. `previewed`: its ThumbHash and a thumbnail are there. `unknown`: a later version of the service made a change that this one does not know.',
  }),
  item_id: id,
  changed_at: time(
    'When it happened, in UTC. The order of the list is that of the changes, whatever their times.',
  ),
  item: Type.Union([MediaObject, Type.Null()], {
    description: 'The item as it is now; null where the bucket does not list it any more.',
  }),
})

export const ChangeList = closedObject('ChangeList', 'Changes of items, and where the feed continues.', {
  data: Type.Array(Change, { description: 'In the order in which they happened.' }),
  next_cursor: Type.String({ description: 'Send it as `after` for the changes that follow.' }),
  has_more: Type.Boolean({ description: 'Whether further changes were there already.' }),
})

export const IdList = closedObject('IdList', 'Items by their ids.', {
  ids: Type.Array(id, {
    minItems: 1,
    maxItems: maxIds,
    description: 'Repeated ids count once.',
  }),
})

export const DeletedIds = closedObject('DeletedIds', 'Items to delete, and what replaces them.', {
  ...IdList.properties,
  replaced_by: Type.Optional(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      description:
        'For some of the ids, the id of the item that replaces it: the key of the deleted item passes to it (OK10). Needs `media:write` too.',
    }),
  ),
})

export const DeletedItems = closedObject('DeletedItems', 'The result of a request to delete items.', {
  deleted: Type.Array(id, { description: 'The deleted items.' }),
  missing: Type.Array(id, { description: 'Ids of which the bucket has no item.' }),
})

export const LabelledItems = closedObject('LabelledItems', 'The result of a request to label items.', {
  labelled: Type.Array(id, { description: 'The items that have the labels now.' }),
  missing: Type.Array(id, { description: 'Ids of which the bucket has no item.' }),
})

export const LabelList = closedObject('LabelList', 'The labels of the items of the bucket.', {
  data: Type.Array(
    closedObject('LabelKey', 'A key, and its most frequent values.', {
      key: Type.String({ description: 'The key.' }),
      values: Type.Array(
        closedObject('LabelValue', 'A value of a key.', {
          value: Type.String({ description: 'The value.' }),
          items: count('The number of items that have the label.'),
        }),
        { description: 'The most frequent ones first.' },
      ),
      has_more: Type.Boolean({ description: 'Whether the key has further values.' }),
    }),
    { description: 'The keys in alphabetical order.' },
  ),
  has_more: Type.Boolean({ description: 'Whether the bucket has further keys.' }),
})

export const RestoredItems = closedObject('RestoredItems', 'The result of a request to restore items.', {
  restored: Type.Array(id, { description: 'The restored items.' }),
  missing: Type.Array(id, { description: 'Ids of which the trash has no item.' }),
})

export const PurgeRequest = closedObject('PurgeRequest', 'Items of the trash: `ids`, or all.', {
  ids: Type.Optional(Type.Array(id, { minItems: 1, maxItems: maxIds })),
  all: Type.Optional(Type.Literal(true)),
})

const TrashedItem = closedObject('TrashedItem', 'An item in the trash.', {
  ...MediaObject.properties,
  deleted_at: time('The time of the deletion, in UTC.'),
  expires_at: time('The time from which it cannot be restored, in UTC.'),
})

export const TrashList = closedObject('TrashList', 'Items of the trash, and where the list continues.', {
  data: Type.Array(TrashedItem, { description: 'Last deleted first.' }),
  next_cursor: nullable(
    Type.String({ description: 'Send it as `after` for the items that follow; null where none follow.' }),
  ),
})

const signedUrl = url('The signed URL. It is used unchanged.')
const linkExpiry = time('The time of expiry, in UTC.')

export const SignedLink = closedObject('SignedLink', 'A link that expires.', {
  url: signedUrl,
  expires_at: linkExpiry,
})

export const SignedLinks = closedObject('SignedLinks', 'Links that expire.', {
  links: Type.Array(closedObject('ItemLink', 'The link of one item.', { id, url: signedUrl }), {
    description: 'In the order of the ids.',
  }),
  missing: Type.Array(id, { description: 'Ids of which the bucket has no item.' }),
  expires_at: linkExpiry,
})

export const BucketObject = closedObject('Bucket', 'The contents and the quota of a bucket.', {
  name: Type.String({ description: 'The name of the bucket.' }),
  items: count('The number of items.'),
  bytes: count('The total size of the items in bytes, with those in the trash.'),
  reserved_items: count('The number of unfinished resumable uploads.'),
  reserved_bytes: count('The bytes that they have reserved.'),
  max_items: nullable(count('The limit of items; null where there is none.')),
  max_bytes: nullable(count('The limit of bytes; null where there is none.')),
  max_file_size: nullable(count('The limit of a file in bytes; null for that of the service.')),
  types: nullable(Type.Array(Type.String(), { description: 'The types that files may have; null for all.' })),
  trash_days: count('The days for which deleted items can be restored; 0 without a trash.'),
  trash_items: count('The items in the trash, which `items` does not include.'),
  trash_bytes: count('Their bytes, which `bytes` includes.'),
  private: Type.Boolean({ description: 'Whether bytes need a token or a signed URL.' }),
  signed_pages: Type.Boolean({ description: 'Whether lists of a private bucket have signed URLs.' }),
  public_keys: Type.Boolean({
    description: 'Whether everybody may read objects of the S3 protocol that are public-read, by their keys.',
  }),
  public_list: Type.Boolean({
    description: 'Whether everybody may list the keys of its objects, if it has public keys.',
  }),
  url_uploads: Type.Boolean({
    description:
      'Whether the bucket stores files that the service requests from other servers, where the service does.',
  }),
  variants: nullable(
    Type.Array(Type.String(), {
      ...{ minItems: 1, maxItems: maxSizes },
      description: `The sizes of the variants of its items, as entries of MEDIABUCKET_VARIANTS: ${sizesRule}. \`thumb\` and \`medium\` of the service are added. Null for all sizes of the service.`,
    }),
  ),
  public_variants: nullable(
    Type.Array(Type.String(), {
      maxItems: maxSizes,
      description:
        'The names of the sizes that everybody may read although the bucket is private; null for none.',
    }),
  ),
  crop: Type.Unsafe<'center' | 'attention' | null>({
    type: ['string', 'null'],
    enum: ['center', 'attention', null],
    description:
      'What sizes that cut keep of pictures without a focus: the middle, or the part that attracts the eye; null for MEDIABUCKET_CROP.',
  }),
  remove_metadata: Type.Boolean({
    description: 'Whether metadata is removed from pictures and videos when they are stored.',
  }),
  keep_taken_at: Type.Boolean({
    description: 'Whether media objects have the time at which a picture or a video was taken.',
  }),
  item_days: nullable(count('The days after which new items expire; null if they do not.')),
})

/** What `detail` states in words, for programs (docs/interface.md P6). */
const faultMembers = {
  accepted: Type.Optional(Type.Array(Type.String(), { description: 'All values that are accepted.' })),
  minimum: Type.Optional(Type.Number({ description: 'The smallest number or size that is accepted.' })),
  maximum: Type.Optional(Type.Number({ description: 'The largest number or size that is accepted.' })),
  unit: Type.Optional(
    Type.Unsafe<NonNullable<FaultMembers['unit']>>({
      type: 'string',
      description: 'The unit of `minimum`, `maximum` and `left`, such as `bytes`; absent for plain numbers.',
    }),
  ),
  left: Type.Optional(Type.Number({ minimum: 0, description: 'What is left of `maximum`.' })),
  members: Type.Optional(
    Type.Array(Type.String(), { description: 'The members that the JSON object may have.' }),
  ),
  missing: Type.Optional(Type.Array(Type.String(), { description: 'The scopes that the token lacks.' })),
  reasons: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Why the service is not ready, as in the response of `/readyz`.',
    }),
  ),
  source_status: Type.Optional(
    Type.Integer({ description: 'The status with which the server of a URL has responded.' }),
  ),
}

export const Problem = closedObject('Problem', 'An error (RFC 9457).', {
  type: url('A page with the cause and the cure.'),
  title: Type.String({ description: 'The same for every problem with this code.' }),
  status: Type.Integer({ minimum: 400, maximum: 599, description: 'The status of the response.' }),
  detail: Type.String({ description: 'The cause in this request.' }),
  instance: Type.String({ description: 'The id of the request in the log.' }),
  code: Type.Unsafe<FaultCode>({
    type: 'string',
    pattern: '^[a-z0-9-]+$',
    description: 'For programs. Later versions may add codes.',
  }),
  errors: Type.Optional(
    Type.Array(
      Type.Object(
        {
          parameter: Type.String({ description: 'The name of a parameter.' }),
          detail: Type.String({ description: 'What the parameter accepts.' }),
          ...faultMembers,
        },
        { additionalProperties: false },
      ),
      { minItems: 1, description: 'The invalid parameters.' },
    ),
  ),
  ...faultMembers,
})

export const Health = closedObject('Health', 'The state of the process.', {
  status: Type.String({ description: '`ok`.' }),
})

export const ReadinessObject = closedObject('Readiness', 'What the service can do now.', {
  status: Type.Literal('ready'),
  reads: Type.Boolean({ description: 'Listings and bytes can be served.' }),
  writes: Type.Boolean({ description: 'Uploads can be stored.' }),
  reasons: Type.Array(
    Type.Union(
      (
        [
          'catalog-unreadable',
          'catalog-unwritable',
          'bytes-unavailable',
          'bytes-unwritable',
          'disk-full',
          'scanner-unavailable',
          'read-only',
        ] as const
      ).map((reason) => Type.Literal(reason)),
    ),
    { description: 'Why something fails; empty where nothing does.' },
  ),
})
