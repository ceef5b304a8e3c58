import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { matchesWeakly } from '../../core/entity-tag.ts'
import { interfaceDocument, interfacePage } from '../descriptions/describe-interface.ts'
import type { Descriptions } from '../openapi/collect.ts'
import { described } from '../openapi/description.ts'

interface Parts {
  readonly descriptions: Descriptions
  readonly settings: { readonly baseUrl: string; readonly envelope: 'bare' | 'wrapped' }
}

interface Made {
  readonly bytes: Buffer
  readonly headers: Readonly<Record<string, string>>
}

/** `/openapi.json` and `/docs` (docs/interface.md D1, D2), made when they are first asked for. */
export function describeInterfaceRoutes(app: FastifyInstance, { descriptions, settings }: Parts): void {
  async function makeDocument(): Promise<Made> {
    const { buildDocument } = await import('../openapi/build-document.ts')
    const document = buildDocument(descriptions, settings)
    return made(`${JSON.stringify(document, null, 2)}\n`, {
      'content-type': 'application/json; charset=utf-8',
    })
  }

  async function makePage(): Promise<Made> {
    const { renderPage } = await import('../openapi/render-page.ts')
    const { html, policy } = renderPage(descriptions, settings)
    return made(html, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy })
  }

  const serve = (url: string, description: typeof interfacePage, make: () => Promise<Made>) => {
    let kept: Promise<Made> | null = null
    app.get(url, described(description), async (request, reply) => {
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
