import { createHash } from 'node:crypto'
import type { TSchema } from 'typebox'
import type { FaultCode } from '../../core/faults.ts'
import { STATUS_CODES } from '../../core/node-http.ts'
import { version } from '../../core/version.ts'
import { problemKinds } from '../problem-kinds.ts'
import {
  type DescribedOperation,
  exampleBase,
  type OperationDescription,
  type ResponseDescription,
  requestHeaders,
  tags,
} from './description.ts'
import { introduction, problemsByStatus, requirement } from './document.ts'
import { commonMarkToHtml, escapeHtml, htmlPage } from './html.ts'

/** The style sheet of `/docs`, for both colour schemes and for print. */
const pageStyle = `
:root{color-scheme:light dark;--ink:light-dark(#1c2330,#dde3ec);--soft:light-dark(#5a6577,#97a3b6);
--paper:light-dark(#fff,#12161d);--panel:light-dark(#f4f6f9,#1a2029);--line:light-dark(#dde2ea,#2c3543);
--accent:light-dark(#0b5cad,#7db8f5)}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif;
display:grid;grid-template-columns:17rem minmax(0,1fr)}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1.5rem 1.25rem;background:var(--panel);border-right:1px solid var(--line)}
nav h2{font-size:.75rem;letter-spacing:.06em;text-transform:uppercase;color:var(--soft);margin:1.4rem 0 .3rem}
nav ul{list-style:none;margin:0;padding:0}
nav a{display:block;padding:.15rem 0;color:inherit;text-decoration:none;font-size:.92rem}
nav a:hover{color:var(--accent)}
main{padding:2.2rem clamp(1.25rem,4vw,3.5rem) 6rem;max-width:64rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .4rem}
main>h2{margin:3.2rem 0 0;font-size:1.3rem}
main>h2+p{margin:.1rem 0 0;color:var(--soft)}
article{border-top:1px solid var(--line);margin-top:1.4rem;padding-top:1.4rem}
article>h3{margin:0;font-size:1.12rem}
.address{margin:.35rem 0 .8rem;font:.95rem ui-monospace,monospace;overflow-wrap:anywhere}
.method{display:inline-block;min-width:3.6rem;margin-right:.4rem;padding:.1rem .45rem;border-radius:.3rem;text-align:center;
font-weight:700;font-size:.78rem;color:#fff;background:#475569}
.get{background:#0b63b5}.post{background:#15803d}.patch,.put{background:#a15c07}.delete{background:#b91c1c}
.needs{color:var(--soft);font-size:.92rem}
h4{margin:1.3rem 0 .4rem;font-size:.82rem;letter-spacing:.04em;text-transform:uppercase;color:var(--soft)}
p{margin:.5rem 0}
code,pre{font:.875em ui-monospace,monospace}
p code,td code,dd code{background:var(--panel);padding:.08em .3em;border-radius:.25rem}
pre{margin:.4rem 0;padding:.8rem 1rem;overflow-x:auto;background:var(--panel);border:1px solid var(--line);border-radius:.45rem;line-height:1.45}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--soft);font-size:.82rem}
td:first-child{white-space:nowrap}
td p{margin:0}
details{margin:.4rem 0}
summary{cursor:pointer;color:var(--accent);font-size:.92rem}
a{color:var(--accent)}
@media(max-width:52rem){body{display:block}nav{position:static;height:auto;border-right:0;border-bottom:1px solid var(--line)}
table,tbody,tr,td{display:block}thead{display:none}td{border:0;padding:.1rem 0}tr{border-bottom:1px solid var(--line);padding:.4rem 0}
td:first-child{white-space:normal}}
@media print{body{display:block}nav{display:none}article{break-inside:avoid}}
`

/** An operation with all its methods and paths. */
interface Entry {
  readonly description: OperationDescription
  readonly endpoints: readonly DescribedOperation[]
}

/** Renders the documentation as an HTML page, with its Content-Security-Policy (docs/interface.md D2). */
export function renderPage(
  operations: readonly DescribedOperation[],
  settings: { readonly baseUrl: string; readonly envelope: 'bare' | 'wrapped' },
): { html: string; policy: string } {
  const byDescription = Map.groupBy(operations, ({ description }) => description)
  const entries = [...byDescription].map(([description, endpoints]) => ({ description, endpoints }))
  const groups = Object.entries(tags).map(([tag, text]) => ({
    tag,
    text,
    entries: entries.filter(({ description }) => description.tag === tag),
  }))
  const body = `<nav aria-label="Operations">
<a href="#top"><strong>Mediabucket</strong> ${escapeHtml(version)}</a>
${groups.map(({ tag, entries: some }) => `<h2>${escapeHtml(tag)}</h2>\n<ul>\n${some.map(navItem).join('\n')}\n</ul>`).join('\n')}
</nav>
<main id="top">
<h1>HTTP API</h1>
${commonMarkToHtml(introduction)}
<p>All paths are below <code>${exampleBase}</code>. For programs:
<a href="openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
${groups.map(({ tag, text, entries: some }) => `<h2>${escapeHtml(tag)}</h2>\n${commonMarkToHtml(text)}\n${some.map((entry) => article(entry, settings.envelope)).join('\n')}`).join('\n')}
</main>`
  const hash = createHash('sha256').update(pageStyle).digest('base64')
  return {
    html: htmlPage({ title: 'Mediabucket: HTTP API', body, style: pageStyle }).replaceAll(
      exampleBase,
      escapeHtml(settings.baseUrl),
    ),
    policy: `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  }
}

const navItem = ({ description }: Entry) =>
  `<li><a href="#${description.operationId}">${escapeHtml(description.summary)}</a></li>`

function article({ description, endpoints }: Entry, envelope: 'bare' | 'wrapped'): string {
  const { operationId, summary, rules, body, responses, curl } = description
  const parts = [
    `<h3>${escapeHtml(summary)}</h3>`,
    ...[...Map.groupBy(endpoints, ({ path }) => path)].map(([path, some]) => endpointHtml(path, some)),
    commonMarkToHtml(description.description),
    `<div class="needs">${commonMarkToHtml(`${requirement(description)} Rules: ${rules}.`)}</div>`,
    `<pre>${escapeHtml(curl)}</pre>`,
    parameters(description),
    ...(body ? [`<h4>Body</h4>`, commonMarkToHtml(`${mediaTypes(body)}. ${body.description}`)] : []),
    '<h4>Responses</h4>',
    ...Object.entries(responses).map(([status, response]) => responseHtml(status, response, envelope)),
    problems(problemsByStatus(description, endpoints[0]?.method ?? 'GET')),
  ]
  return `<article id="${operationId}">\n${parts.filter(Boolean).join('\n')}\n</article>`
}

const endpointHtml = (path: string, methods: readonly DescribedOperation[]): string =>
  `<div class="address">${methods.map(({ method }) => `<span class="method ${method.toLowerCase()}">${method}</span>`).join('')}${escapeHtml(path)}</div>`

const mediaTypes = ({ content = {} }: Pick<ResponseDescription, 'content'>): string =>
  Object.keys(content)
    .map((type) => `\`${type}\``)
    .join(' or ')

function parameters({ path, query, headers = [] }: OperationDescription): string {
  const rows = [
    ...[path, query].flatMap((members) =>
      Object.entries(members?.properties ?? {}).map(([name, member]) =>
        row(
          `\`${name}\``,
          members === path ? 'path' : 'query',
          'description' in member ? `${member.description}` : '',
        ),
      ),
    ),
    ...headers.map((name) => row(`\`${name}\``, 'header', requestHeaders[name].description)),
  ]
  return rows.length === 0 ? '' : `<h4>Parameters</h4>\n${table(['Name', 'In', 'Description'], rows)}`
}

function responseHtml(status: string, response: ResponseDescription, envelope: 'bare' | 'wrapped'): string {
  const types = mediaTypes(response)
  const headers = (response.headers ?? []).map((name) => `\`${name}\``).join(', ')
  const sentences = [
    `\`${status}\` ${response.description}`,
    types && `Type: ${types}.`,
    headers && `Headers: ${headers}.`,
  ]
  const examples = Object.entries(response.content ?? {}).flatMap(([, { examples: some = {}, enveloped }]) =>
    Object.entries(some).map(([name, value]) => {
      const example = enveloped && envelope === 'wrapped' ? { data: value } : value
      return `<details><summary>Example: ${escapeHtml(name)}</summary><pre>${escapeHtml(JSON.stringify(example, null, 2))}</pre></details>`
    }),
  )
  const schemas = Object.values(response.content ?? {}).map(({ schema }) => members(schema))
  return [commonMarkToHtml(sentences.filter(Boolean).join(' ')), ...schemas, ...examples].join('\n')
}

/** Renders the members of an object schema; returns an empty string for other schemas. */
function members(schema: TSchema | undefined): string {
  if (!schema || !('properties' in schema)) return ''
  const rows = Object.entries<Readonly<Record<string, unknown>>>(Object(schema.properties)).map(
    ([name, { type, description = '' }]) => row(`\`${name}\``, [type].flat().join(' or '), `${description}`),
  )
  return rows.length === 0
    ? ''
    : `<details><summary>Members</summary>${table(['Name', 'Type', 'Description'], rows)}</details>`
}

function problems(byStatus: ReadonlyMap<number, readonly FaultCode[]>): string {
  const rows = [...byStatus].flatMap(([status, codes]) =>
    codes.map((code) => {
      const link = `<a href="problems/${code}"><code>${code}</code></a>`
      return `<tr><td>${status} ${STATUS_CODES[status]}</td><td>${link}</td><td>${commonMarkToHtml(problemKinds[code].cause)}</td></tr>`
    }),
  )
  return `<details><summary>Problems</summary>${table(['Status', 'Code', 'Cause'], rows)}</details>`
}

const row = (...cells: readonly string[]): string =>
  `<tr>${cells.map((cell) => `<td>${commonMarkToHtml(cell)}</td>`).join('')}</tr>`

const table = (heads: readonly string[], rows: readonly string[]): string =>
  `<table><thead><tr>${heads.map((head) => `<th scope="col">${head}</th>`).join('')}</tr></thead><tbody>\n${rows.join('\n')}\n</tbody></table>`
