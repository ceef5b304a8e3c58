import { beforeAll, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { upload } from '../harness/upload.ts'

let server: SharedServer
let url: string
let names: Readonly<Record<string, string>>
beforeAll(async () => {
  server = await sharedServer()
  url = (await upload(server, '0123456789')).url
  const { headers } = await fetch(url)
  const [tag, date] = [headers.get('etag') ?? '', headers.get('last-modified') ?? '']
  names = {
    TAG: tag,
    WEAK: `W/${tag}`,
    OTHER: '"other"',
    LIST: `"other", W/"x",${tag}`,
    NOW: date,
    BEFORE: new Date(Date.parse(date) - 60_000).toUTCString(),
    AFTER: new Date(Date.parse(date) + 60_000).toUTCString(),
    NONSENSE: 'the day before yesterday',
    ISO: new Date(Date.parse(date) - 60_000).toISOString(),
  }
})

/** `if-match: TAG; range: bytes=0-1` as headers, with the words in capitals replaced. */
const headersOf = (line: string) =>
  Object.fromEntries(
    line.split('; ').map((part) => {
      const [name = '', value = ''] = part.split(': ')
      return [name, names[value] ?? value]
    }),
  )

test.each([
  // RFC 9110, section 13.2.2, step 1: If-Match.
  ['if-match: TAG', 200],
  ['if-match: LIST', 200],
  ['if-match: *', 200],
  ['if-match: OTHER', 412],
  ['if-match: WEAK', 412],
  // Step 2: If-Unmodified-Since, unless there is an If-Match.
  ['if-unmodified-since: NOW', 200],
  ['if-unmodified-since: AFTER', 200],
  ['if-unmodified-since: BEFORE', 412],
  ['if-unmodified-since: NONSENSE', 200],
  ['if-match: TAG; if-unmodified-since: BEFORE', 200],
  ['if-match: OTHER; if-unmodified-since: AFTER', 412],
  // Step 3: If-None-Match.
  ['if-none-match: TAG', 304],
  ['if-none-match: WEAK', 304],
  ['if-none-match: LIST', 304],
  ['if-none-match: *', 304],
  ['if-none-match: OTHER', 200],
  ['if-match: OTHER; if-none-match: TAG', 412],
  ['if-match: TAG; if-none-match: TAG', 304],
  // Step 4: If-Modified-Since, unless there is an If-None-Match.
  ['if-modified-since: NOW', 304],
  ['if-modified-since: AFTER', 304],
  ['if-modified-since: BEFORE', 200],
  ['if-modified-since: NONSENSE', 200],
  ['if-modified-since: ISO', 200],
  ['if-none-match: OTHER; if-modified-since: NOW', 200],
  ['if-none-match: TAG; if-modified-since: BEFORE', 304],
  ['if-unmodified-since: BEFORE; if-modified-since: NOW', 412],
  // Step 5: Range and If-Range come last.
  ['if-none-match: TAG; range: bytes=0-1', 304],
  ['if-match: OTHER; range: bytes=0-1', 412],
  ['if-none-match: TAG; range: bytes=99-', 304],
  ['if-match: TAG; range: bytes=0-1', 206],
  ['if-match: TAG; range: bytes=0-1; if-range: OTHER', 200],
  ['if-none-match: OTHER; range: bytes=99-', 416],
])('B4 %s is a %d to GET, and as much to HEAD', async (line, status) => {
  const get = await fetch(url, { headers: headersOf(line) })
  const head = await fetch(url, { method: 'HEAD', headers: headersOf(line) })
  expect([get.status, head.status]).toEqual([status, [206, 416].includes(status) ? 200 : status])
  if (status === 412) await expectProblem(get, 412, 'precondition-failed')
  if (status === 304) expect(await get.text()).toBe('')
  expect(await head.text()).toBe('')
})

test('B4, B2 a 304 has the headers that a cache must update, and no body', async () => {
  const { headers } = await fetch(url)
  const response = await fetch(url, { headers: headersOf('if-none-match: TAG') })
  for (const name of ['etag', 'cache-control', 'last-modified']) {
    expect([name, response.headers.get(name)]).toEqual([name, headers.get(name)])
  }
  for (const name of ['content-type', 'content-length', 'content-disposition', 'content-range']) {
    expect([name, response.headers.get(name)]).toEqual([name, null])
  }
})

test('B4, B5 a 412 has no validators of the item', async () => {
  const response = await fetch(url, { headers: headersOf('if-match: OTHER') })
  expect(response.headers.get('etag')).toBe(null)
  expect(response.headers.get('last-modified')).toBe(null)
  expect(response.headers.get('x-content-type-options')).toBe('nosniff')
})
