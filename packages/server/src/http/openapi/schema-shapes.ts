import { type Static, type TSchema, Type } from 'typebox'

// The shapes that several schemas have.

/** A list of types, which code generators and serializers support better than a union. */
export const nullable = <T extends TSchema & { type: string }>(schema: T) =>
  Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] })

export const closedObject = <T extends Parameters<typeof Type.Object>[0]>(
  title: string,
  description: string,
  members: T,
) => Type.Object(members, { title, description, additionalProperties: false })

export const url = (description: string) => Type.String({ format: 'uri', description })
export const count = (description: string) => Type.Integer({ minimum: 0, description })
export const time = (description: string) => Type.String({ format: 'date-time', description })
export const pixels = (description: string) => nullable(Type.Integer({ minimum: 1, description }))
