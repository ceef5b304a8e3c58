import { isDeepStrictEqual } from 'node:util'
import type { FaultCode } from '../../core/fault.ts'
import { type ResponseHeader, responseHeaders } from './headers.ts'
import type { ResponseDescription } from './operation-description.ts'
import { exampleProblem } from './problem-responses.ts'
import { Problem, WrappedPage } from './schemas.ts'

export type JsonObject = Readonly<Record<string, unknown>>
export type Envelope = 'bare' | 'wrapped'

/** The components that operations share, by name. */
export interface Components {
  readonly schemas: Record<string, unknown>
  readonly headers: Record<string, unknown>
  readonly responses: Record<string, unknown>
  readonly examples: Record<string, unknown>
}

/** Returns a reference to the response as a component, or the response itself where another component has its name. */
export function shareResponse(name: string, response: JsonObject, components: Components): JsonObject {
  components.responses[name] ??= response
  return isDeepStrictEqual(components.responses[name], response)
    ? { $ref: `#/components/responses/${name}` }
    : response
}

export function headersOf(names: readonly ResponseHeader[], components: Components): JsonObject {
  if (names.length === 0) return {}
  const headers: Record<string, unknown> = {}
  for (const name of names) {
    const { optional, ...header }: JsonObject = responseHeaders[name]
    components.headers[name] = { ...header, required: optional !== true }
    headers[name] = { $ref: `#/components/headers/${name}` }
  }
  return { headers }
}

export function contentOf(
  { content = {} }: Pick<ResponseDescription, 'content'>,
  envelope: Envelope,
  components: Components,
): JsonObject {
  const entries = Object.entries(content).map(([type, { schema, examples, enveloped }]) => {
    const isWrapped = enveloped && envelope === 'wrapped'
    return [
      type,
      {
        ...(schema ? { schema: hoist(isWrapped ? WrappedPage : schema, components) } : {}),
        ...(examples
          ? {
              examples: Object.fromEntries(
                Object.entries(examples).map(([name, value]) => [
                  name,
                  { value: isWrapped ? { data: value } : value },
                ]),
              ),
            }
          : {}),
      },
    ]
  })
  return Object.fromEntries(entries)
}

export function problemContent(
  status: number,
  codes: readonly FaultCode[],
  components: Components,
): JsonObject {
  for (const code of codes) {
    components.examples[code] = { summary: exampleProblem(code).title, value: exampleProblem(code) }
  }
  const constraints = { properties: { status: { const: status }, code: { enum: codes } } }
  return {
    'application/problem+json': {
      schema: { allOf: [hoist(Problem, components), constraints] },
      examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
    },
  }
}

/** Moves each schema with a title to the components and returns a reference to it. */
function hoist(schema: unknown, components: Components): unknown {
  if (Array.isArray(schema)) return schema.map((item) => hoist(item, components))
  if (typeof schema !== 'object' || schema === null) return schema
  const { title, ...rest }: JsonObject = { ...schema }
  if (typeof title !== 'string') return hoistMembers(schema, components)
  components.schemas[title] ??= hoistMembers(rest, components)
  return { $ref: `#/components/schemas/${title}` }
}

const hoistMembers = (members: object, components: Components): JsonObject =>
  Object.fromEntries(Object.entries(members).map(([name, member]) => [name, hoist(member, components)]))
