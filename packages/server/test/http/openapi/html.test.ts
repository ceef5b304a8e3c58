import { expect, test } from 'vitest'
import { commonMarkToHtml, escapeHtml, htmlPage } from '../../../src/http/openapi/html.ts'

const hostile = `<script>alert("1")</script>'&`

test('HTML in a text is escaped', () => {
  const escaped = '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;'
  expect(escapeHtml(hostile)).toBe(escaped)
  expect(commonMarkToHtml(hostile)).toBe(`<p>${escaped}</p>`)
  expect(commonMarkToHtml(`\`${hostile}\``)).toBe(`<p><code>${escaped}</code></p>`)
  expect(htmlPage({ title: hostile, body: '' })).toContain(`<title>${escaped}</title>`)
})

test('an empty line separates paragraphs, backticks mark code', () => {
  expect(commonMarkToHtml('Send `a`\nor `b`.\n\nThen wait.')).toBe(
    '<p>Send <code>a</code>\nor <code>b</code>.</p>\n<p>Then wait.</p>',
  )
})
