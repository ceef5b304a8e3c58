import { type Static, type TSchema, Type } from 'typebox'
import type { FaultCode } from '../../core/fault.ts'
import { pageSize } from '../../core/page.ts'
import { type Scope, scopes } from '../../core/scopes.ts'
import { type Variant, variantSides, variants } from '../../core/variant.ts'

// What the wire carries. A schema with a title is a component of the OpenAPI document under that name.

/** As JSON Schema has it since 2019, which generators and serialisers take better than a union. */
const nullable = <T extends TSchema & { type: string }>(schema: T) =>
  Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] })

const closed = <T extends Parameters<typeof Type.Object>[0]>(title: string, about: string, members: T) =>
  Type.Object(members, { title, description: about, additionalProperties: false })

const url = (description: string) => Type.String({ format: 'uri', description })
const count = (description: string) => Type.Integer({ minimum: 0, description })
const time = (description: string) => Type.String({ format: 'date-time', description })
const pixels = (description: string) => nullable(Type.Integer({ minimum: 1, description }))

const Link = closed('Link', 'One entry of `links`.', {
  url: nullable(url('Null where there is nothing to link.')),
  label: Type.String({
    description: 'A page number, `&laquo; Previous`, `Next &raquo;`, or `...` for a gap.',
  }),
  active: Type.Boolean({ description: 'True on the number of the current page alone.' }),
})

export const Page = closed('Page', 'One page of a listing, in the shape of Laravel’s LengthAwarePaginator.', {
  current_page: Type.Integer({ minimum: 1, description: 'The page that was asked for.' }),
  data: Type.Array(url('Where an item’s bytes are.'), {
    maxItems: pageSize,
    description: 'The URLs of the items, in the order of their upload, oldest first.',
  }),
  first_page_url: url('The first page.'),
  from: nullable(
    Type.Integer({ minimum: 1, description: 'Position of the first item; null on an empty page.' }),
  ),
  last_page: Type.Integer({ minimum: 1, description: 'The number of pages; 1 for an empty bucket.' }),
  last_page_url: url('The last page.'),
  links: Type.Array(Link, { description: 'Previous, one entry for each page number, next.' }),
  next_page_url: nullable(url('Null on the last page and after it.')),
  path: url('The listing without a page.'),
  per_page: Type.Integer({ const: pageSize, description: 'Always 10.' }),
  prev_page_url: nullable(url('Null on the first page.')),
  to: nullable(
    Type.Integer({ minimum: 1, description: 'Position of the last item; null on an empty page.' }),
  ),
  total: count('The exact number of items, in the same snapshot as `data`.'),
})

export const WrappedPage = closed('WrappedPage', 'A page inside `data`.', { data: Page })

export const MediaObject = closed('MediaObject', 'An item.', {
  id: Type.String({ description: 'Opaque and safe in URLs; at least 128 random bits.' }),
  url: url('Where the bytes are. Whoever holds it may fetch them.'),
  filename: nullable(Type.String({ description: 'The name it was sent with, cleaned; null without one.' })),
  content_type: Type.String({
    description:
      'The stored type: the one that the bytes show, else the declared one, else that of the extension (U7).',
  }),
  size: count('Bytes.'),
  sha256: nullable(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'Of the bytes, in hex; null only for rows that were seeded without bytes.',
    }),
  ),
  created_at: time('When it was stored, in UTC.'),
  width: pixels('Of a picture as it is displayed, in pixels; null where unknown.'),
  height: pixels('Of a picture as it is displayed, in pixels; null where unknown.'),
})

export const MediaList = closed('MediaList', 'The items of one form, in the order sent.', {
  data: Type.Array(MediaObject),
})

export const TokenObject = closed('Token', 'What a token is; never the token itself.', {
  id: Type.String({ description: 'What `mediabucket token revoke` takes.' }),
  name: Type.String({ description: 'The name it was made with; may be empty.' }),
  bucket: Type.String({ description: 'The name of the one bucket it belongs to.' }),
  scopes: Type.Array(Type.Unsafe<Scope>({ type: 'string', enum: [...scopes] }), {
    uniqueItems: true,
    description: 'What it may do.',
  }),
  created_at: time('When it was made, in UTC.'),
  expires_at: nullable(time('When it ends, in UTC; null where it does not.')),
})

export const BucketObject = closed('Bucket', 'What a bucket holds, and what it may hold.', {
  name: Type.String({ description: 'The name of the bucket.' }),
  items: count('How many items it holds.'),
  bytes: count('How many bytes they have together.'),
  reserved_items: count('Unfinished uploads in pieces.'),
  reserved_bytes: count('What they have reserved.'),
  max_items: nullable(count('The most items; null where there is no limit.')),
  max_bytes: nullable(count('The most bytes; null where there is no limit.')),
})

export const Problem = closed('Problem', 'An error as RFC 9457 has it.', {
  type: url('A page that tells the cause and the cure.'),
  title: Type.String({ description: 'The same for every problem with this code.' }),
  status: Type.Integer({ minimum: 400, maximum: 599, description: 'The status of the answer.' }),
  detail: Type.String({ description: 'What was wrong this time.' }),
  instance: Type.String({ description: 'The id under which the request is logged.' }),
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
          detail: Type.String({ description: 'What it accepts.' }),
        },
        { additionalProperties: false },
      ),
      { minItems: 1, description: 'The parameters at fault.' },
    ),
  ),
})

export const Health = closed('Health', 'How the service is.', {
  status: Type.String({ description: '`ok`.' }),
})

export const ReadinessObject = closed('Readiness', 'What the service can serve now.', {
  status: Type.Literal('ready'),
  reads: Type.Boolean({ description: 'Listings and bytes can be served.' }),
  writes: Type.Boolean({ description: 'Uploads can be stored.' }),
  reasons: Type.Array(
    Type.Union(
      (['catalog-unreadable', 'catalog-unwritable', 'bytes-unavailable', 'disk-full'] as const).map(
        (reason) => Type.Literal(reason),
      ),
    ),
    { description: 'Why something cannot be served; empty where all is well.' },
  ),
})

export const ReadinessQuery = Type.Object({
  writes: Type.Optional(
    Type.String({ description: 'With any value, a 503 where uploads cannot be stored.' }),
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
        'The page: a decimal integer from 1 to 9007199254740991 without sign, leading zero, fraction, exponent or spaces, and at most once.',
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
      description: `A smaller picture in place of the bytes, as WebP: ${variants
        .map((name) => `\`${name}\` fits into ${variantSides[name]} × ${variantSides[name]} pixels`)
        .join(', ')}.`,
    }),
  ),
  download: Type.Optional(
    Type.String({ description: 'Present, with any value: sends the file as an `attachment`, to be saved.' }),
  ),
})

export const ProblemParams = Type.Object({
  code: Type.String({ description: 'The `code` of a problem.', examples: ['page-malformed'] }),
})
export type ProblemParams = Static<typeof ProblemParams>
