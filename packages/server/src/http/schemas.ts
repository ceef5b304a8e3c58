import { type Static, Type } from 'typebox'

/** A repeated `page` arrives as a list; core/page-number.ts says what is accepted. */
export const ListingQuery = Type.Object({
  page: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
})
export type ListingQuery = Static<typeof ListingQuery>

export const MediaParams = Type.Object({ id: Type.String() })
export type MediaParams = Static<typeof MediaParams>

export const BytesParams = Type.Object({ name: Type.String() })
export type BytesParams = Static<typeof BytesParams>

export const ProblemParams = Type.Object({ code: Type.String() })
export type ProblemParams = Static<typeof ProblemParams>
