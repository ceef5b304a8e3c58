import type { TObject } from 'typebox'
import { version } from '../../core/version.ts'
import {
  type Components,
  contentOf,
  type Envelope,
  headersOf,
  type JsonObject,
  problemContent,
  shareResponse,
} from './components.ts'
import { requestHeaders } from './headers.ts'
import {
  type DescribedOperation,
  exampleBase,
  type OperationDescription,
  readIfPrivate,
  tags,
} from './operation-description.ts'
import {
  describeProblems,
  problemHeaderNames,
  problemsByStatus,
  responseComponentName,
} from './problem-responses.ts'

export const introduction = `A media bucket: stores files, lists them ten to a page with an exact total, and serves them by permanent URLs.

Every error is a problem document (RFC 9457); its \`code\` is for programs, its \`type\` links to a page with the cause and remedy.
Operations under \`/api\` and \`/v1\` need a bearer token in the \`Authorization\` header, never in the URL. Every path responds to
\`OPTIONS\` with \`Allow\`, and to unsupported methods with a 405 problem. Unknown query parameters are ignored.`

/** Builds the OpenAPI 3.1 document of the operations for this deployment (docs/interface.md D1). */
export function buildDocument(
  operations: readonly DescribedOperation[],
  settings: { readonly baseUrl: string; readonly envelope: Envelope },
): JsonObject {
  const components: Components = { schemas: {}, headers: {}, responses: {}, examples: {} }
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of operations) {
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
  { method, path, description, isHeadOfGet }: DescribedOperation,
  envelope: Envelope,
  components: Components,
): JsonObject {
  const { operationId, tag, summary, needs, body, curl } = description
  const suffix = `${path.startsWith('/v1/') ? 'V1' : ''}${isHeadOfGet ? 'Head' : ''}`
  const parameters = parametersOf(method, description)
  const rule = `Rules: ${description.rules} of docs/interface.md.`
  return {
    operationId: `${operationId}${suffix}`,
    tags: [tag],
    summary: `${summary}${path.startsWith('/v1/') ? ' (the same under /v1)' : ''}${isHeadOfGet ? ', headers only' : ''}`,
    description: `${description.description}\n\n${requirement(needs)} ${rule}`,
    security: securityOf(needs),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body
      ? { requestBody: { ...body, content: contentOf(body, envelope, components), required: true } }
      : {}),
    responses: responsesOf(method, description, envelope, components),
    'x-codeSamples': [
      { lang: 'Shell', label: 'curl', source: isHeadOfGet ? curl.replace('curl', 'curl -I') : curl },
    ],
  }
}

export function requirement(needs: OperationDescription['needs']): string {
  switch (needs) {
    case 'nothing':
      return 'Needs no token.'
    case 'any token':
      return 'Needs a token with any scopes.'
    case readIfPrivate:
      return 'Needs a token with the scope `media:read` only in a private bucket, and not with a signed URL.'
    default:
      return `Needs a token with the scope \`${needs}\`.`
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

function parametersOf(
  method: DescribedOperation['method'],
  { path, query, headers = [] }: OperationDescription,
): JsonObject[] {
  return [
    ...membersOf('path', path),
    ...membersOf('query', query),
    ...headers
      .filter((name) => method !== 'HEAD' || !name.endsWith('Range'))
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
    if (method === 'HEAD' && rangeStatuses.has(Number(status))) continue
    responses[status] = {
      description: response.description,
      ...headersOf(response.headers ?? [], components),
      ...(method === 'HEAD' || !response.content
        ? {}
        : { content: contentOf(response, envelope, components) }),
    }
  }
  for (const [status, codes] of problemsByStatus(description)) {
    if (method === 'HEAD' && rangeStatuses.has(status)) continue
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

/** RFC 9110, section 14.2: Range is defined for GET only. */
const rangeStatuses: ReadonlySet<number> = new Set([206, 416])

const sorted = (named: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1)))
