import { createHash } from 'node:crypto'
import { Fault, type FaultCode } from '../core/faults.ts'
import type { HttpContext } from '../http/context.ts'
import { matchesWeakly, namesType } from '../http/headers.ts'
import type { DescribedOperation } from '../http/openapi/description.ts'
import { commonMarkToHtml, htmlPage } from '../http/openapi/html.ts'
import { problemKinds } from '../http/problem-kinds.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import * as openapi from './documentation-routes.openapi.ts'

interface StaticResponse {
  readonly bytes: Buffer
  readonly headers: Readonly<Record<string, string>> & { readonly etag: string }
}

/** `/openapi.json`, `/docs` and `/problems/{code}` (docs/interface.md D1, D2, P2). `allRoutes` returns the routes to describe. */
export function documentationRoutes(
  { settings, vary }: HttpContext,
  allRoutes: () => readonly Route[],
): readonly Route[] {
  async function renderDocument(): Promise<StaticResponse> {
    const { buildDocument } = await import('../http/openapi/document.ts')
    const document = buildDocument(describedOperations(allRoutes()), settings)
    return staticResponse(`${JSON.stringify(document, null, 2)}\n`, {
      'content-type': 'application/json; charset=utf-8',
    })
  }

  async function renderHtml(): Promise<StaticResponse> {
    const { renderPage } = await import('../http/openapi/document-page.ts')
    const { html, policy } = renderPage(describedOperations(allRoutes()), settings)
    return staticResponse(html, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
    })
  }

  return [
    route('GET', '/problems/:code', openapi.explainProblem, (exchange) => explainProblem(vary, exchange)),
    route('GET', '/openapi.json', openapi.interfaceDocument, renderedOnce(renderDocument)),
    route('GET', '/docs', openapi.interfacePage, renderedOnce(renderHtml)),
  ]
}

/** `GET /problems/{code}`: the page that a problem's `type` links to, with its cause and remedy. */
async function explainProblem(
  vary: HttpContext['vary'],
  { params, request }: Exchange<'code'>,
): Promise<Reply> {
  const { code } = params
  if (!isCode(code)) throw new Fault('route-unknown', 'No problem has this code.')
  const headers = {
    'cache-control': 'public, max-age=3600',
    vary: vary('Accept'),
    'x-content-type-options': 'nosniff',
  }
  const { status, title, cause, cure } = problemKinds[code]
  if (!namesType(request.headers.accept, 'text/html')) {
    const text = `${title} (${status}, ${code})\n\n${cause}\n\n${cure}\n`
    return { status: 200, headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' }, body: text }
  }
  const body = `<h1>${title}</h1>\n${commonMarkToHtml(`\`${status}\` \`${code}\`\n\n${cause}\n\n${cure}`)}`
  return {
    status: 200,
    headers: {
      ...headers,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'",
    },
    body: htmlPage({ title, body }),
  }
}

/**
 * The operations of the document. Leaves out paths with a trailing slash, which equal those without (docs/interface.md L1), and OPTIONS,
 * which is the same everywhere.
 */
const describedOperations = (routes: readonly Route[]): readonly DescribedOperation[] =>
  routes.flatMap(({ method, pattern, description }) => {
    if (description === null || pattern.endsWith('/')) return []
    const path = pattern.replaceAll(/:(\w+)/g, '{$1}')
    const operation = { method, path, description, isHeadOfGet: false }
    return method === 'GET' && description.head
      ? [operation, { ...operation, method: 'HEAD', isHeadOfGet: true }]
      : [operation]
  })

const isCode = (text: string): text is FaultCode => Object.hasOwn(problemKinds, text)

/** Handles requests for a resource that is rendered at the first of them. */
function renderedOnce(render: () => Promise<StaticResponse>) {
  let rendered: Promise<StaticResponse> | null = null
  return async ({ request }: Exchange): Promise<Reply> => {
    rendered ??= render()
    const { bytes, headers } = await rendered
    const match = request.headers['if-none-match']
    if (match !== undefined && matchesWeakly(match, headers.etag)) return { status: 304, headers }
    return { status: 200, headers, body: bytes }
  }
}

function staticResponse(text: string, headers: Readonly<Record<string, string>>): StaticResponse {
  const bytes = Buffer.from(text)
  const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`
  return {
    bytes,
    headers: { ...headers, etag, 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' },
  }
}
