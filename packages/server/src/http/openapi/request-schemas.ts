import { type Static, Type } from 'typebox'
import {
  defaultItemLimit,
  type ItemKind,
  type ItemOrder,
  itemKinds,
  itemOrders,
  maxItemLimit,
} from '../../core/items-query.ts'

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
    Type.String({
      pattern: '^[a-z0-9][a-z0-9-]{0,31}$',
      examples: ['thumb'],
      description:
        'A smaller picture instead of the bytes, by the name of its size: `thumb` (400 × 400 pixels), `medium` (1600 × 1600 pixels), or another size of MEDIABUCKET_VARIANTS. AVIF for clients that accept `image/avif`, WebP for others.',
    }),
  ),
  download: Type.Optional(Type.String({ description: 'With any value: send the file as an `attachment`.' })),
})

export const ProblemParams = Type.Object({
  code: Type.String({ description: 'The `code` of a problem.', examples: ['page-malformed'] }),
})
export type ProblemParams = Static<typeof ProblemParams>
