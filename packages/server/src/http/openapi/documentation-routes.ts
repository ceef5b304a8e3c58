import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { matchesWeakly } from '../headers/entity-tag.ts'
import type { OperationList } from './collect-operations.ts'
import { exampleBase, type OperationDescription, routeOptions } from './operation-description.ts'
import type { ResponseHeader } from './response-headers.ts'

interface Parts {
  readonly operationList: OperationList
  readonly settings: { readonly baseUrl: string; readonly envelope: 'bare' | 'wrapped' }
}

interface StaticResponse {
  readonly bytes: Buffer
  readonly headers: Readonly<Record<string, string>>
}

/** `/openapi.json` and `/docs` (docs/interface.md D1, D2), rendered at the first request. */
export function documentationRoutes(app: FastifyInstance, { operationList, settings }: Parts): void {
  async function renderDocument(): Promise<StaticResponse> {
    const { buildDocument } = await import('./build-document.ts')
    const document = buildDocument(operationList, settings)
    return staticResponse(`${JSON.stringify(document, null, 2)}\n`, {
      'content-type': 'application/json; charset=utf-8',
    })
  }

  async function renderHtml(): Promise<StaticResponse> {
    const { renderPage } = await import('./render-page.ts')
    const { html, policy } = renderPage(operationList, settings)
    return staticResponse(html, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
    })
  }

  const addRoute = (
    url: string,
    description: OperationDescription,
    render: () => Promise<StaticResponse>,
  ) => {
    let cached: Promise<StaticResponse> | null = null
    app.get(url, routeOptions(description), async (request, reply) => {
      cached ??= render()
      const { bytes, headers } = await cached
      reply.headers(headers)
      const match = request.headers['if-none-match']
      if (match !== undefined && matchesWeakly(match, headers['etag'] ?? '')) return reply.code(304).send()
      return reply.send(bytes)
    })
  }
  addRoute('/openapi.json', documentDescription, renderDocument)
  addRoute('/docs', pageDescription, renderHtml)
}

function staticResponse(text: string, headers: Readonly<Record<string, string>>): StaticResponse {
  const bytes = Buffer.from(text)
  const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`
  return {
    bytes,
    headers: { ...headers, etag, 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' },
  }
}

const documentHeaders: readonly ResponseHeader[] = ['ETag', 'Cache-Control', 'X-Content-Type-Options']
const pageHeaders: readonly ResponseHeader[] = [...documentHeaders, 'Content-Security-Policy']
const notModified = 'The entity tag in `If-None-Match` is the current one.'

const documentDescription: OperationDescription = {
  operationId: 'interfaceDocument',
  tag: 'Operations',
  summary: 'Get the OpenAPI document',
  description: 'Returns the OpenAPI 3.1 document with the base URL and the envelope of this deployment.',
  rules: 'D1',
  needs: 'nothing',
  headers: ['If-None-Match'],
  responses: {
    200: {
      description: 'The document.',
      headers: documentHeaders,
      content: { 'application/json': { schema: Type.Object({}, { description: 'An OpenAPI document.' }) } },
    },
    304: { description: notModified, headers: documentHeaders },
  },
  problems: [],
  curl: `curl ${exampleBase}/openapi.json`,
}

const pageDescription: OperationDescription = {
  operationId: 'interfacePage',
  tag: 'Operations',
  summary: 'Get the documentation',
  description: 'Returns one HTML page. It has no scripts and loads nothing.',
  rules: 'D2',
  needs: 'nothing',
  headers: ['If-None-Match'],
  responses: {
    200: {
      description: 'The page.',
      headers: pageHeaders,
      content: { 'text/html': { schema: Type.String() } },
    },
    304: { description: notModified, headers: pageHeaders },
  },
  problems: [],
  curl: `curl ${exampleBase}/docs`,
}
