import {
  type ItemKind,
  itemKinds,
  type ListOrder,
  listOrders,
  longestName,
  longestPath,
  maxIds,
  maxLabelValue,
  maxListLimit,
  maxSearchLength,
  maxSearchTerms,
  maxSelectedLabels,
} from '@mediabucket/client/rules'
import { type Static, Type } from 'typebox'
import { maxWait } from '../../core/change-queries.ts'
import { maxKeyLength } from '../../core/object-key-rules.ts'
import {
  defaultLabelLimit,
  defaultListLimit,
  defaultPageSize,
  type ListedUrls,
  listedUrls,
  maxPageSize,
  type SwitchValue,
  switchValues,
} from '../../core/queries.ts'

// The schemas of queries and of path parameters.

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

/** The parameter for the length of a list. */
export const limit = (entries: string) =>
  Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxListLimit,
      default: defaultListLimit,
      examples: [200],
      description: `The largest number of ${entries} in the response.`,
    }),
  )

export const TrashQuery = Type.Object({
  limit: limit('items'),
  after: Type.Optional(
    Type.String({
      examples: ['5f0c2e7a1.17'],
      description: 'The `next_cursor` of the previous response.',
    }),
  ),
})

const linkMembers = {
  expires_in: Type.Optional(
    Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 1,
      default: null,
      description:
        'The lifetime in seconds, at most MEDIABUCKET_MAX_LINK_LIFETIME. With null the URL is valid for 15 to 30 minutes, and the same for requests within a quarter of an hour, so that caches can use it.',
    }),
  ),
  variant: Type.Optional(
    Type.Unsafe<string | null>({
      type: ['string', 'null'],
      default: null,
      examples: ['thumb'],
      description: 'A smaller picture, by the name of its size; null for the bytes.',
    }),
  ),
  download: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether the response is an `attachment`.' }),
  ),
  names: Type.Optional(
    Type.Boolean({
      description: 'Whether the URL has the name of the item. By default MEDIABUCKET_NAMES determines it.',
    }),
  ),
}

export const LinkBody = Type.Object(linkMembers, {
  title: 'NewLink',
  description: 'What a link returns, and for how long.',
  additionalProperties: false,
})

export const LinksBody = Type.Object(
  {
    ids: Type.Array(Type.String({ description: 'The id of an item.' }), {
      minItems: 1,
      maxItems: maxIds,
      description: 'Repeated ids count once.',
    }),
    ...linkMembers,
  },
  { title: 'NewLinks', description: 'Links of several items.', additionalProperties: false },
)

const urls = Type.Optional(
  Type.Unsafe<ListedUrls>({
    type: 'string',
    enum: [...listedUrls],
    examples: ['signed'],
    description:
      'Whether the URLs of a private bucket are signed. By default the setting `signed_pages` of the bucket determines it. Those of a public bucket are never signed.',
  }),
)

const names = Type.Optional(
  Type.Unsafe<SwitchValue>({
    type: 'string',
    enum: [...switchValues],
    examples: ['on'],
    description:
      'Whether the URLs have the names of the items (B13): `on`, which may be left out, or `off`. By default, MEDIABUCKET_NAMES determines it.',
  }),
)

export const ItemQuery = Type.Object({ urls, names })

export const ChangesQuery = Type.Object({
  urls,
  names,
  limit: limit('changes'),
  after: Type.Optional(
    Type.String({
      examples: ['kXk2mP0vQ3xLMTIwMw'],
      description:
        'The cursor of a change, or a `next_cursor`. Without it, the first change that is kept is the first one.',
    }),
  ),
  since: Type.Optional(
    Type.Literal('now', { description: 'Only what follows this request. Not together with `after`.' }),
  ),
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: maxWait,
      default: 0,
      examples: [30],
      description: 'How many seconds the response waits for a change, if there is none.',
    }),
  ),
})

/** Numbered pages and the next page repeat these parameters of their request. One that is missing here is missing there. */
export const ItemListQuery = Type.Object({
  urls,
  names,
  limit: limit('items'),
  order: Type.Optional(
    Type.Unsafe<ListOrder>({
      type: 'string',
      enum: [...listOrders],
      default: 'oldest',
      examples: ['newest'],
      description:
        '`oldest` is the order of upload, `newest` its reverse; `taken` is the order in which pictures and videos were taken, `taken-desc` its reverse (K19); `name` is the order of the filenames, `name-desc` its reverse (K20).',
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
  name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: maxSearchLength,
      examples: ['harbour jpg'],
      description: `Only items whose filename contains every word of this text, in upper or lower case, with or without diacritics. Up to ${maxSearchTerms} words.`,
    }),
  ),
  labels: Type.Optional(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string', maxLength: maxLabelValue },
      examples: [{ 'label.album': '42' }],
      description: `Only items with these labels: a parameter \`label.KEY\` with the exact value for each, up to ${maxSelectedLabels}, for example \`label.album=42\`.`,
    }),
  ),
  sha256: Type.Optional(
    Type.String({
      pattern: '^[0-9A-Fa-f]{64}$',
      examples: ['2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae'],
      description: 'Only items with these bytes, by their SHA-256 in hex.',
    }),
  ),
  start_name: Type.Optional(
    Type.String({
      examples: ['IMG_0042.jpg'],
      description: `With \`order=name\` or \`name-desc\`, the filename at which the list begins: items that are before it in this order are left out. Up to ${longestName} bytes.`,
    }),
  ),
  path: Type.Optional(
    Type.String({
      examples: ['summer/'],
      description: `Only items whose path begins with this text, in the order of their paths; all items with a path if it is empty. Up to ${longestPath} bytes.`,
    }),
  ),
  key: Type.Optional(
    Type.String({
      examples: ['summer/'],
      description: `Only items whose key, for programs that speak S3, begins with this text, in the order of their keys; all items with a key if it is empty. Up to ${maxKeyLength} bytes.`,
    }),
  ),
  keys: Type.Optional(
    Type.Unsafe<SwitchValue>({
      type: 'string',
      enum: [...switchValues],
      examples: ['on'],
      description:
        'Whether the items have the member `key` (K21): `on`, which may be left out, or `off`, the default.',
    }),
  ),
  page: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      examples: [3],
      description: 'The number of a page, instead of a cursor. The response has another form.',
    }),
  ),
  per_page: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxPageSize,
      examples: [25],
      description: `The items of a numbered page, ${defaultPageSize} by default.`,
    }),
  ),
  after: Type.Optional(
    Type.String({
      examples: ['kXk2mP0vQ3xLMTIwMy4xNzkwMDAwMDAwMDAw'],
      description: 'The `next_cursor` of the previous response, with the same other parameters.',
    }),
  ),
})

export const LabelsQuery = Type.Object({
  key: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9_.-]{1,40}$',
      examples: ['album'],
      description: 'Only labels with this key.',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxListLimit,
      default: defaultLabelLimit,
      examples: [100],
      description: 'The largest number of values of a key.',
    }),
  ),
})

export const ItemParams = Type.Object({
  id: Type.String({ description: 'The id of an item.', examples: ['k92v8d0q3h5wkc9r1n6x7zjy4tam'] }),
})
export type ItemParams = Static<typeof ItemParams>

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

export const NamedBytesParams = Type.Object({
  name: Type.String({ description: 'The id of an item.', examples: ['k92v8d0q3h5wkc9r1n6x7zjy4tam'] }),
  filename: Type.String({
    description: 'Any name, with `.` and the item’s own extension, if it has one.',
    examples: ['harbour.jpg'],
  }),
})

export const BytesQuery = Type.Object({
  variant: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9][a-z0-9-]{0,31}$',
      examples: ['thumb'],
      description:
        'A smaller picture instead of the bytes, by the name of its size: `thumb` (400 × 400 pixels), `medium` (1600 × 1600 pixels), or another size of the bucket or of MEDIABUCKET_VARIANTS. Unless the size has a format of its own, AVIF for clients that accept `image/avif`, WebP for others.',
    }),
  ),
  w: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 99_999,
      examples: [640],
      description:
        'Instead of `variant`: a width in pixels. It selects the smallest size that shows the whole picture and is at least as wide, or the largest one. `Mediabucket-Variant` names it. `width` is the same. Other parameters of services that resize pictures (`h`, `fit`, `quality` …) get a 400 problem.',
    }),
  ),
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 60,
      examples: [0],
      description:
        'With `variant`: the seconds that the response waits for a variant that is not rendered yet, before it is 202. Without it, the response waits until the variant is rendered. It may follow a signed URL, as its last parameter.',
    }),
  ),
  download: Type.Optional(Type.String({ description: 'With any value: send the file as an `attachment`.' })),
  expires: Type.Optional(
    Type.String({
      pattern: '^[1-9][0-9]{0,11}$',
      description: 'In a signed URL: its expiry in seconds since 1970.',
    }),
  ),
  key: Type.Optional(Type.String({ description: 'In a signed URL: the id of the key that signed it.' })),
  signature: Type.Optional(
    Type.String({ pattern: '^[A-Za-z0-9_-]{43}$', description: 'In a signed URL: the signature.' }),
  ),
})

export const ProblemParams = Type.Object({
  code: Type.String({ description: 'The `code` of a problem.', examples: ['page-malformed'] }),
})
export type ProblemParams = Static<typeof ProblemParams>
