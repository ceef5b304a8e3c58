import type { TObject, TSchema } from 'typebox'
import type { FaultCode } from '../../core/fault.ts'
import type { Scope } from '../../core/scopes.ts'
import type { RequestHeader } from './request-headers.ts'
import type { ResponseHeader } from './response-headers.ts'

/** How examples begin; the configured base URL takes its place. */
export const exampleBase = 'https://media.example.org'

export const tags = {
  Listing: 'What is in the bucket, page by page.',
  Upload: 'Files in, durable when acknowledged.',
  Items: 'One item: look at it, delete it.',
  Bytes: 'The files themselves, by URLs that need no token.',
  Tokens: 'Who is asking.',
  Operations: 'Health, metrics, and this description.',
}

interface Content {
  /** Left out for bytes of any kind. */
  readonly schema?: TSchema
  readonly examples?: Readonly<Record<string, unknown>>
  /** The schema and the examples stand inside `data` where the deployment says so (docs/interface.md L15). */
  readonly enveloped?: true
}

export interface ResponseDescription {
  readonly description: string
  readonly headers?: readonly ResponseHeader[]
  /** By media type. */
  readonly content?: Readonly<Record<string, Content>>
}

/** What people and programs are told of one operation; descriptions are CommonMark. */
export interface OperationDescription {
  readonly operationId: string
  readonly tag: keyof typeof tags
  readonly summary: string
  readonly description: string
  /** The rules of docs/interface.md that it keeps, as ranges: `L1 to L18`. */
  readonly rules: string
  readonly needs: Scope | 'any token' | 'nothing'
  readonly path?: TObject
  readonly query?: TObject
  readonly headers?: readonly RequestHeader[]
  readonly body?: { readonly description: string; readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<Record<number, ResponseDescription>>
  /** Besides those that every operation, or every operation with a token, can meet. */
  readonly problems: readonly FaultCode[]
  /** What its problems carry besides what all problems do. */
  readonly problemHeaders?: readonly ResponseHeader[]
  /** Monitoring works while the rate limits are met (docs/interface.md W3). */
  readonly unlimited?: true
  /** HEAD is told of where the contract names it. */
  readonly head?: true
  readonly curl: string
}

declare module 'fastify' {
  interface FastifyContextConfig {
    description?: OperationDescription
    /** What every answer of the route carries, problems included. */
    headers?: Readonly<Record<string, string>>
  }
}

/**
 * The options of a described route. Its JSON answers are serialised by their schemas, so that nothing else gets out;
 * what is sent is judged by the guards of the core, not here. Pages and unions are sent as they are.
 */
export function routeOptions(description: OperationDescription) {
  const response: Record<number, TSchema> = {}
  for (const [status, { content }] of Object.entries(description.responses)) {
    const json = content?.['application/json']
    if (json?.schema && 'properties' in json.schema && !json.enveloped) response[Number(status)] = json.schema
  }
  return { config: { description }, schema: { response } }
}
