import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { matchesWeakly } from '../headers/entity-tag.ts'
import type { OperationList } from './collect-operations.ts'
import { exampleBase, type OperationDescription, routeOptions } from './operation-description.ts'
import type { ResponseHeader } from './response-headers.ts'

interface Parts {
  readonly descriptions: OperationList
  readonly settings: { readonly baseUrl: string; readonly envelope: 'bare' | 'wrapped' }
}

interface Made {
  readonly bytes: Buffer
  readonly headers: Readonly<Record<string, string>>
}

/** `/openapi.json` and `/docs` (docs/interface.md D1, D2), made when they are first asked for. */
export function documentationRoutes(app: FastifyInstance, { descriptions, settings }: Parts): void {
  async function makeDocument(): Promise<Made> {
    const { buildDocument } = await import('./build-document.ts')
    const document = buildDocument(descriptions, settings)
    return made(`${JSON.stringify(document, null, 2)}\n`, {
      'content-type': 'application/json; charset=utf-8',
    })
  }

  async function makePage(): Promise<Made> {
    const { renderPage } = await import('./render-page.ts')
    const { html, policy } = renderPage(descriptions, settings)
    return made(html, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy })
  }

  const serve = (url: string, description: typeof interfacePage, make: () => Promise<Made>) => {
    let kept: Promise<Made> | null = null
    app.get(url, routeOptions(description), async (request, reply) => {
      kept ??= make()
      const { bytes, headers } = await kept
      reply.headers(headers)
      const match = request.headers['if-none-match']
      if (match !== undefined && matchesWeakly(match, headers['etag'] ?? '')) return reply.code(304).send()
      return reply.send(bytes)
    })
  }
  serve('/openapi.json', interfaceDocument, makeDocument)
  serve('/docs', interfacePage, makePage)
}

function made(text: string, headers: Readonly<Record<string, string>>): Made {
  const bytes = Buffer.from(text)
  const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`
  return {
    bytes,
    headers: { ...headers, etag, 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' },
  }
}

const headers: readonly ResponseHeader[] = ['ETag', 'Cache-Control', 'X-Content-Type-Options']
const pageHeaders: readonly ResponseHeader[] = [...headers, 'Content-Security-Policy']
const unchanged = 'The client has the present one.'

const interfaceDocument: OperationDescription = {
  operationId: 'interfaceDocument',
  tag: 'Operations',
  summary: 'This description, for programs',
  description: 'OpenAPI 3.1, with the base URL and the envelope of this deployment.',
  rules: 'D1',
  needs: 'nothing',
  headers: ['If-None-Match'],
  responses: {
    200: {
      description: 'The document.',
      headers,
      content: { 'application/json': { schema: Type.Object({}, { description: 'An OpenAPI document.' }) } },
    },
    304: { description: unchanged, headers },
  },
  problems: [],
  curl: `curl ${exampleBase}/openapi.json`,
}

const interfacePage: OperationDescription = {
  operationId: 'interfacePage',
  tag: 'Operations',
  summary: 'This description, for people',
  description: 'A page of HTML that needs nothing else: no script, no font, no other host.',
  rules: 'D2',
  needs: 'nothing',
  headers: ['If-None-Match'],
  responses: {
    200: {
      description: 'The page.',
      headers: pageHeaders,
      content: { 'text/html': { schema: Type.String() } },
    },
    304: { description: unchanged, headers: pageHeaders },
  },
  problems: [],
  curl: `curl ${exampleBase}/docs`,
}
