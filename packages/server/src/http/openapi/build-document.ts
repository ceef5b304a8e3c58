import { isDeepStrictEqual } from 'node:util'
import type { TObject } from 'typebox'
import type { FaultCode } from '../../core/fault.ts'
import { version } from '../../core/version.ts'
import type { DescribedOperation, OperationList } from './collect-operations.ts'
import {
  exampleBase,
  type OperationDescription,
  type ResponseDescription,
  tags,
} from './operation-description.ts'
import {
  describeProblems,
  exampleProblem,
  problemHeaderNames,
  problemsByStatus,
  responseComponentName,
} from './problem-responses.ts'
import { requestHeaders } from './request-headers.ts'
import { type ResponseHeader, responseHeaders } from './response-headers.ts'
import { Problem, WrappedPage } from './schemas.ts'

type Node = Readonly<Record<string, unknown>>
type Envelope = 'bare' | 'wrapped'

/** What several operations share, each under its name. */
interface Components {
  readonly schemas: Record<string, unknown>
  readonly headers: Record<string, unknown>
  readonly responses: Record<string, unknown>
  readonly examples: Record<string, unknown>
}

export const about = `A media bucket: files go in, are listed ten to a page with an exact total, and are served by URLs that stay.

Every error is a problem as RFC 9457 has it; its \`code\` is for programs, its \`type\` leads to a page with cause and cure.
Operations under \`/api\` and \`/v1\` need a bearer token in the \`Authorization\` header, never in the URL. Every path answers
\`OPTIONS\` with \`Allow\`, and methods that it lacks with a 405 problem. Unknown query parameters are ignored.`

/** The OpenAPI 3.1 document of these operations, as this deployment answers (docs/interface.md D1). */
export function buildDocument(
  descriptions: OperationList,
  settings: { readonly baseUrl: string; readonly envelope: Envelope },
): Node {
  const components: Components = { schemas: {}, headers: {}, responses: {}, examples: {} }
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of descriptions.all()) {
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
      description: about,
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
          description: 'A token of one bucket, made with `mediabucket token create`.',
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
  into: Components,
): Node {
  const { operationId, tag, summary, needs, body, curl } = description
  const suffix = `${path.startsWith('/v1/') ? 'V1' : ''}${isHeadOfGet ? 'Head' : ''}`
  const parameters = parametersOf(method, description)
  const rule = `Rules: ${description.rules} of docs/interface.md.`
  return {
    operationId: `${operationId}${suffix}`,
    tags: [tag],
    summary: `${summary}${path.startsWith('/v1/') ? ' (the same under /v1)' : ''}${isHeadOfGet ? ', the headers alone' : ''}`,
    description: `${description.description}\n\n${needed(needs)} ${rule}`,
    security: needs === 'nothing' ? [] : [{ bearer: needs === 'any token' ? [] : [needs] }],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body ? { requestBody: { ...body, content: contentOf(body, envelope, into), required: true } } : {}),
    responses: responsesOf(method, description, envelope, into),
    'x-codeSamples': [
      { lang: 'Shell', label: 'curl', source: isHeadOfGet ? curl.replace('curl', 'curl -I') : curl },
    ],
  }
}

export const needed = (needs: OperationDescription['needs']): string =>
  needs === 'nothing'
    ? 'Needs no token.'
    : needs === 'any token'
      ? 'Needs a token, whatever its scopes.'
      : `Needs a token with the scope \`${needs}\`.`

function parametersOf(
  method: DescribedOperation['method'],
  { path, query, headers = [] }: OperationDescription,
): Node[] {
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

const membersOf = (place: 'path' | 'query', members: TObject | undefined): Node[] =>
  Object.entries(members?.properties ?? {}).map(([name, member]) => {
    const { description, examples, ...schema }: Node = { ...member }
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
  into: Components,
): Node {
  const responses: Record<string, unknown> = {}
  for (const [status, answer] of Object.entries(description.responses)) {
    if (method === 'HEAD' && aboutRanges.has(Number(status))) continue
    responses[status] = {
      description: answer.description,
      ...headersOf(answer.headers ?? [], into),
      ...(method === 'HEAD' || !answer.content ? {} : { content: contentOf(answer, envelope, into) }),
    }
  }
  for (const [status, codes] of problemsByStatus(description)) {
    if (method === 'HEAD' && aboutRanges.has(status)) continue
    const answer = {
      description: describeProblems(codes),
      ...headersOf([...problemHeaderNames(status), ...(description.problemHeaders ?? [])], into),
      ...(method === 'HEAD' ? {} : { content: problemContent(status, codes, into) }),
    }
    const name = responseComponentName(status, codes) + (method === 'HEAD' ? 'Head' : '')
    responses[status] = shared(name, answer, into)
  }
  return responses
}

/** RFC 9110, section 14.2: Range has a meaning for GET alone. */
const aboutRanges: ReadonlySet<number> = new Set([206, 416])

/** A reference to the component, which is made if its name is free; the answer itself where another has the name. */
function shared(name: string, answer: Node, into: Components): Node {
  into.responses[name] ??= answer
  return isDeepStrictEqual(into.responses[name], answer) ? { $ref: `#/components/responses/${name}` } : answer
}

function headersOf(names: readonly ResponseHeader[], into: Components): Node {
  if (names.length === 0) return {}
  const headers: Record<string, unknown> = {}
  for (const name of names) {
    const { optional, ...header }: Node = responseHeaders[name]
    into.headers[name] = { ...header, required: optional !== true }
    headers[name] = { $ref: `#/components/headers/${name}` }
  }
  return { headers }
}

function contentOf(
  { content = {} }: Pick<ResponseDescription, 'content'>,
  envelope: Envelope,
  into: Components,
): Node {
  const entries = Object.entries(content).map(([type, { schema, examples, enveloped }]) => {
    const wrap = enveloped && envelope === 'wrapped'
    return [
      type,
      {
        ...(schema ? { schema: hoist(wrap ? WrappedPage : schema, into) } : {}),
        ...(examples
          ? {
              examples: Object.fromEntries(
                Object.entries(examples).map(([name, value]) => [
                  name,
                  { value: wrap ? { data: value } : value },
                ]),
              ),
            }
          : {}),
      },
    ]
  })
  return Object.fromEntries(entries)
}

function problemContent(status: number, codes: readonly FaultCode[], into: Components): Node {
  for (const code of codes) {
    into.examples[code] = { summary: exampleProblem(code).title, value: exampleProblem(code) }
  }
  const narrowed = { properties: { status: { const: status }, code: { enum: codes } } }
  return {
    'application/problem+json': {
      schema: { allOf: [hoist(Problem, into), narrowed] },
      examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
    },
  }
}

/** The schema with a reference in place of every titled one, which becomes a component. */
function hoist(schema: unknown, into: Components): unknown {
  if (Array.isArray(schema)) return schema.map((item) => hoist(item, into))
  if (typeof schema !== 'object' || schema === null) return schema
  const { title, ...rest }: Node = { ...schema }
  if (typeof title !== 'string') return hoistMembers(schema, into)
  into.schemas[title] ??= hoistMembers(rest, into)
  return { $ref: `#/components/schemas/${title}` }
}

const hoistMembers = (members: object, into: Components): Node =>
  Object.fromEntries(Object.entries(members).map(([name, member]) => [name, hoist(member, into)]))

const sorted = (named: Node): Node =>
  Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1)))
