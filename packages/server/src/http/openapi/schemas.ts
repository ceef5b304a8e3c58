import { type Static, type TSchema, Type } from 'typebox'
import type { FaultCode } from '../../core/fault.ts'
import {
  defaultItemLimit,
  type ItemKind,
  type ItemOrder,
  itemKinds,
  itemOrders,
  maxItemLimit,
} from '../../core/items-query.ts'
import { pageSize } from '../../core/page.ts'
import { type Scope, scopes } from '../../core/scopes.ts'
import { type Variant, variantSides, variants } from '../../core/variant.ts'

// The schemas of requests and responses. A schema with a title is a component of the OpenAPI document with that name.

/** A list of types, which code generators and serializers support better than a union. */
const nullable = <T extends TSchema & { type: string }>(schema: T) =>
  Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] })

const closedObject = <T extends Parameters<typeof Type.Object>[0]>(
  title: string,
  description: string,
  members: T,
) => Type.Object(members, { title, description, additionalProperties: false })

const url = (description: string) => Type.String({ format: 'uri', description })
const count = (description: string) => Type.Integer({ minimum: 0, description })
const time = (description: string) => Type.String({ format: 'date-time', description })
const pixels = (description: string) => nullable(Type.Integer({ minimum: 1, description }))

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

const variantDescription = (name: Variant) =>
  `Fits into ${variantSides[name]} × ${variantSides[name]} pixels.`

export const MediaObject = closedObject('MediaObject', 'An item.', {
  id: Type.String({ description: 'Opaque and safe in URLs; at least 128 random bits.' }),
  url: url('The URL of the bytes. It grants access without a token.'),
  filename: nullable(Type.String({ description: 'The sanitized filename; null where none was sent.' })),
  content_type: Type.String({
    description: 'The stored type: detected from the bytes, else declared, else that of the extension (U7).',
  }),
  size: count('The size in bytes.'),
  sha256: nullable(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'The SHA-256 of the bytes in hex; null only for items that were seeded without bytes.',
    }),
  ),
  created_at: time('The time of storage, in UTC.'),
  width: pixels('The displayed width of a picture in pixels; null where unknown.'),
  height: pixels('The displayed height of a picture in pixels; null where unknown.'),
  variants: nullable(
    Type.Object(
      { thumb: url(variantDescription('thumb')), medium: url(variantDescription('medium')) },
      {
        additionalProperties: false,
        description: 'The URLs of smaller pictures, as WebP; null for types that have none (V3).',
      },
    ),
  ),
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

export const TokenObject = closedObject('Token', 'The properties of a token, without the token itself.', {
  id: Type.String({ description: 'The id for `mediabucket token revoke`.' }),
  name: Type.String({ description: 'The name; may be empty.' }),
  bucket: Type.String({ description: 'The name of its bucket.' }),
  scopes: Type.Array(Type.Unsafe<Scope>({ type: 'string', enum: [...scopes] }), {
    uniqueItems: true,
    description: 'Its scopes.',
  }),
  created_at: time('The time of creation, in UTC.'),
  expires_at: nullable(time('The time of expiry, in UTC; null where it does not expire.')),
})

export const BucketObject = closedObject('Bucket', 'The contents and the quota of a bucket.', {
  name: Type.String({ description: 'The name of the bucket.' }),
  items: count('The number of items.'),
  bytes: count('The total size of the items in bytes.'),
  reserved_items: count('The number of unfinished resumable uploads.'),
  reserved_bytes: count('The bytes that they have reserved.'),
  max_items: nullable(count('The limit of items; null where there is none.')),
  max_bytes: nullable(count('The limit of bytes; null where there is none.')),
})

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
        },
        { additionalProperties: false },
      ),
      { minItems: 1, description: 'The invalid parameters.' },
    ),
  ),
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
      (['catalog-unreadable', 'catalog-unwritable', 'bytes-unavailable', 'disk-full'] as const).map(
        (reason) => Type.Literal(reason),
      ),
    ),
    { description: 'Why something fails; empty where nothing does.' },
  ),
})

export const ReadinessQuery = Type.Object({
  writes: Type.Optional(
    Type.String({ description: 'With any value: return 503 if uploads cannot be stored.' }),
  ),
})

export const ListingQuery = Type.Object({
  page: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      default: 1,
      examples: [2],
      description:
        'The page number: a decimal integer from 1 to 9007199254740991 without sign, leading zero, fraction, exponent or spaces, and at most once.',
    }),
  ),
})

export const ItemListQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxItemLimit,
      default: defaultItemLimit,
      examples: [200],
      description: 'The largest number of items in the response.',
    }),
  ),
  order: Type.Optional(
    Type.Unsafe<ItemOrder>({
      type: 'string',
      enum: [...itemOrders],
      default: 'oldest',
      examples: ['newest'],
      description: '`oldest` is the order of upload, `newest` its reverse.',
    }),
  ),
  kind: Type.Optional(
    Type.Unsafe<ItemKind>({
      type: 'string',
      enum: [...itemKinds],
      examples: ['image'],
      description: 'Only items of this kind, which the stored type determines.',
    }),
  ),
  from: Type.Optional(
    Type.String({
      format: 'date-time',
      examples: ['2026-05-01T00:00:00Z'],
      description: 'Only items that were stored at this time or later (RFC 3339).',
    }),
  ),
  to: Type.Optional(
    Type.String({
      format: 'date-time',
      examples: ['2026-06-01T00:00:00Z'],
      description: 'Only items that were stored before this time (RFC 3339).',
    }),
  ),
  after: Type.Optional(
    Type.String({
      examples: ['kXk2mP0vQ3xLMTIwMy4xNzkwMDAwMDAwMDAw'],
      description: 'The `next_cursor` of the previous response, with the same other parameters.',
    }),
  ),
})

export const MediaParams = Type.Object({
  id: Type.String({ description: 'The id of an item.', examples: ['k92v8d0q3h5wkc9r1n6x7zjy4tam'] }),
})
export type MediaParams = Static<typeof MediaParams>

export const UploadParams = Type.Object({
  id: Type.String({ description: 'The id of an upload.', examples: ['7m2k9x4c1v8q0h3r5wnp6tzjya'] }),
})
export type UploadParams = Static<typeof UploadParams>

export const BytesParams = Type.Object({
  name: Type.String({
    description: 'The id of an item, alone or with `.` and the item’s own extension.',
    examples: ['k92v8d0q3h5wkc9r1n6x7zjy4tam.jpg'],
  }),
})
export type BytesParams = Static<typeof BytesParams>

export const BytesQuery = Type.Object({
  variant: Type.Optional(
    Type.Unsafe<Variant>({
      type: 'string',
      enum: [...variants],
      examples: ['thumb'],
      description: `A smaller picture instead of the bytes, as WebP: ${variants
        .map((name) => `\`${name}\` fits into ${variantSides[name]} × ${variantSides[name]} pixels`)
        .join(', ')}.`,
    }),
  ),
  download: Type.Optional(Type.String({ description: 'With any value: send the file as an `attachment`.' })),
})

export const ProblemParams = Type.Object({
  code: Type.String({ description: 'The `code` of a problem.', examples: ['page-malformed'] }),
})
export type ProblemParams = Static<typeof ProblemParams>
