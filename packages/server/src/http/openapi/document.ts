import { isDeepStrictEqual } from 'node:util'
import type { TObject } from 'typebox'
import { Fault, type FaultCode, type ParameterFault } from '../../core/faults.ts'
import type { JsonObject } from '../../core/json.ts'
import { STATUS_CODES } from '../../core/node-http.ts'
import { version } from '../../core/version.ts'
import { bucketHeader } from '../headers.ts'
import { problemKinds } from '../problem-kinds.ts'
import { hasChallenge, type ProblemDetails, problemDetails } from '../problems.ts'
import {
  changesByScope,
  type DescribedOperation,
  exampleBase,
  isOfService,
  type OperationDescription,
  type RequestHeader,
  type ResponseDescription,
  type ResponseHeader,
  readIfPrivate,
  requestHeaders,
  responseHeaders,
  tags,
} from './description.ts'
import { Problem, WrappedPage } from './schemas.ts'

export const introduction = `A media bucket: stores files, lists them ten to a page with an exact total, and serves them by permanent URLs.

Every error is a problem document (RFC 9457); its \`code\` is for programs, its \`type\` links to a page with the cause and remedy.
Operations under \`/api\` and \`/v1\` need a bearer token in the \`Authorization\` header, never in the URL. Every path responds to
\`OPTIONS\` with \`Allow\`, and to unsupported methods with a 405 problem. Every \`GET\` has a \`HEAD\`, which returns the headers only.
\`/v1/media\` is another path of \`/api/media\`, for \`GET\`, \`HEAD\` and \`POST\`. Unknown query parameters are ignored.`

/**
 * Builds the OpenAPI 3.1 document of the operations for this deployment (docs/interface.md D1). HEAD of a GET, and another path of an operation,
 * are left out: generators of clients make a function of each.
 */
export function buildDocument(
  operations: readonly DescribedOperation[],
  settings: { readonly baseUrl: string; readonly envelope: Envelope },
): JsonObject {
  const components: Components = { schemas: {}, headers: {}, responses: {}, examples: {} }
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of operations) {
    if (operation.isHeadOfGet || operation.path.startsWith('/v1/')) continue
    const path = paths[operation.path] ?? {}
    paths[operation.path] = path
    path[operation.method.toLowerCase()] = describeOperation(operation, settings.envelope, components)
  }
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Mediabucket',
      version,
      summary: 'A self-hosted media bucket.',
      description: introduction,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: exampleBase, description: 'The configured base URL' }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'mbkt_…',
          description: 'A token of one bucket, created with `mediabucket token create`.',
        },
      },
      ...Object.fromEntries(Object.entries(components).map(([kind, named]) => [kind, sorted(named)])),
    },
  }
  return JSON.parse(JSON.stringify(document).replaceAll(exampleBase, settings.baseUrl))
}

function describeOperation(
  { method, description }: DescribedOperation,
  envelope: Envelope,
  components: Components,
): JsonObject {
  const { operationId, tag, summary, needs, body, curl } = description
  const parameters = parametersOf(description)
  const rule = `Rules: ${description.rules} of docs/interface.md.`
  return {
    operationId,
    tags: [tag],
    summary,
    description: `${description.description}\n\n${requirement(description)} ${rule}`,
    security: securityOf(needs),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body
      ? { requestBody: { ...body, content: contentOf(body, envelope, components), required: true } }
      : {}),
    responses: responsesOf(method, description, envelope, components),
    'x-codeSamples': [{ lang: 'Shell', label: 'curl', source: curl }],
  }
}

/** Whether the operation is one of a bucket, which requests with a service token name in a header (docs/interface.md ST2). */
const isOfBucket = (description: OperationDescription): boolean =>
  !isOfService(description) && description.needs !== 'nothing' && description.needs !== 'any token'

export function requirement(description: OperationDescription): string {
  const { needs } = description
  switch (needs) {
    case 'nothing':
      return 'Needs no token.'
    case 'any token':
      return 'Needs a token with any scopes.'
    case readIfPrivate:
      return 'Needs a token with the scope `media:read` only in a private bucket, and not with a signed URL.'
    default:
      return `Needs a ${isOfService(description) ? 'service ' : ''}token with the scope \`${needs}\`.`
  }
}

function securityOf(
  needs: OperationDescription['needs'],
): readonly { readonly bearer?: readonly string[] }[] {
  switch (needs) {
    case 'nothing':
      return []
    case 'any token':
      return [{ bearer: [] }]
    case readIfPrivate:
      return [{}, { bearer: ['media:read'] }]
    default:
      return [{ bearer: [needs] }]
  }
}

/** Headers that HTTP clients set themselves. OpenAPI ignores the first two as parameters, and browsers refuse the others. */
const headersOfClients: ReadonlySet<string> = new Set([
  'Accept',
  'Authorization',
  'Accept-Encoding',
  'Expect',
])

function parametersOf(description: OperationDescription): JsonObject[] {
  const { path, query, headers = [] } = description
  const names: readonly RequestHeader[] = isOfBucket(description) ? [...headers, bucketHeader] : headers
  return [
    ...membersOf('path', path),
    ...membersOf('query', query),
    ...names
      .filter((name) => !headersOfClients.has(name))
      .map((name) => {
        const { description, schema, example } = requestHeaders[name]
        return { name, in: 'header', description, schema, example }
      }),
  ]
}

const membersOf = (place: 'path' | 'query', members: TObject | undefined): JsonObject[] =>
  Object.entries(members?.properties ?? {}).map(([name, member]) => {
    const { description, examples, ...schema }: JsonObject = { ...member }
    return {
      name,
      in: place,
      required: members?.required?.includes(name) ?? false,
      description,
      schema,
      ...(Array.isArray(examples) ? { example: examples[0] } : {}),
    }
  })

function responsesOf(
  method: DescribedOperation['method'],
  description: OperationDescription,
  envelope: Envelope,
  components: Components,
): JsonObject {
  const responses: Record<string, unknown> = {}
  for (const [status, response] of Object.entries(description.responses)) {
    responses[status] = {
      description: response.description,
      ...headersOf(response.headers ?? [], components),
      ...(method === 'HEAD' || !response.content
        ? {}
        : { content: contentOf(response, envelope, components) }),
    }
  }
  for (const [status, codes] of problemsByStatus(description, method)) {
    const response = {
      description: describeProblems(codes),
      ...headersOf([...problemHeaderNames(status, codes), ...(description.problemHeaders ?? [])], components),
      ...(method === 'HEAD' ? {} : { content: problemContent(status, codes, components) }),
    }
    const name = responseComponentName(status, codes) + (method === 'HEAD' ? 'Head' : '')
    responses[status] = shareResponse(name, response, components)
  }
  return responses
}

const sorted = (named: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1)))

export type Envelope = 'bare' | 'wrapped'

/** The components that operations share, by name. */
interface Components {
  readonly schemas: Record<string, unknown>
  readonly headers: Record<string, unknown>
  readonly responses: Record<string, unknown>
  readonly examples: Record<string, unknown>
}

/** Returns a reference to the response as a component, or the response itself where another component has its name. */
function shareResponse(name: string, response: JsonObject, components: Components): JsonObject {
  components.responses[name] ??= response
  return isDeepStrictEqual(components.responses[name], response)
    ? { $ref: `#/components/responses/${name}` }
    : response
}

function headersOf(names: readonly ResponseHeader[], components: Components): JsonObject {
  if (names.length === 0) return {}
  const headers: Record<string, unknown> = {}
  for (const name of names) {
    const { optional, ...header }: JsonObject = responseHeaders[name]
    components.headers[name] = { ...header, required: optional !== true }
    headers[name] = { $ref: `#/components/headers/${name}` }
  }
  return { headers }
}

function contentOf(
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

function problemContent(status: number, codes: readonly FaultCode[], components: Components): JsonObject {
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

/** Problems of every operation. */
const commonProblems: readonly FaultCode[] = [
  'request-malformed',
  'request-timeout',
  'headers-too-large',
  'internal',
]

/** Problems of every request with a token. */
const tokenProblems: readonly FaultCode[] = [
  'authorization-repeated',
  'token-malformed',
  'token-unknown',
  'token-expired',
  'token-revoked',
  'token-refused',
  'bucket-missing',
  'issuer-unavailable',
  'catalog-busy',
  'catalog-unavailable',
]

/** The problem codes of an operation by status, in ascending order. */
export function problemsByStatus(
  description: OperationDescription,
  method: string,
): ReadonlyMap<number, readonly FaultCode[]> {
  const { needs, problems, unlimited } = description
  const codes = new Set<FaultCode>([
    ...commonProblems,
    ...(unlimited ? [] : (['rate-limited'] as const)),
    ...(needs === 'nothing' ? [] : tokenProblems),
    ...(isOfBucket(description) ? (['bucket-required', 'bucket-unknown'] as const) : []),
    ...(isOfBucket(description) || needs === 'any token' ? (['bucket-forbidden'] as const) : []),
    ...(needs === 'nothing' || needs === readIfPrivate ? [] : (['token-missing'] as const)),
    ...(needs === 'nothing' || needs === 'any token' ? [] : (['scope-missing'] as const)),
    ...(method === 'GET' || method === 'HEAD' || !changesByScope(needs) ? [] : (['read-only'] as const)),
    ...problems,
  ])
  const byStatus = Map.groupBy(codes, (code) => problemKinds[code].status)
  return new Map([...byStatus].sort(([a], [b]) => a - b))
}

/** The headers of the problems with this status and these codes. */
const problemHeaderNames = (status: number, codes: readonly FaultCode[]): readonly ResponseHeader[] => [
  'Cache-Control',
  ...(codes.some(hasChallenge) ? (['WWW-Authenticate'] as const) : []),
  ...(status === 416 ? (['Content-Range'] as const) : []),
  ...(status === 429 ? (['Retry-After', 'RateLimit', 'RateLimit-Policy'] as const) : []),
  ...(status === 503 ? (['Retry-After'] as const) : []),
]

const describeProblems = (codes: readonly FaultCode[]): string =>
  codes.map((code) => `\`${code}\`: ${problemKinds[code].title}.`).join('\n\n')

/** The name of a response component: from its only code, or from its status. */
const responseComponentName = (status: number, codes: readonly FaultCode[]): string =>
  (codes.length === 1 ? `${codes[0]}` : (STATUS_CODES[status] ?? `${status}`)).replaceAll(
    /(?:^|[-' ])(\w?)/g,
    (_, letter: string) => letter.toUpperCase(),
  )

const parameters: Partial<Record<FaultCode, readonly ParameterFault[]>> = {
  'page-malformed': [
    {
      parameter: 'page',
      detail: `page accepts one decimal integer from 1 to ${Number.MAX_SAFE_INTEGER}.`,
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
    },
  ],
  'scope-missing': [{ parameter: 'scope', detail: 'media:write', missing: ['media:write'] }],
}

/** An example of a problem with this code. */
const exampleProblem = (code: FaultCode): ProblemDetails =>
  problemDetails(
    new Fault(code, problemKinds[code].cause, { parameters: parameters[code] ?? [] }),
    exampleBase,
    '0b3f8d526a414c7e9d102f5e8a7c4b19',
  )
