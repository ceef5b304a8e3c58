import { beforeAll, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { sendRaw } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { upload } from '../harness/upload.ts'

const text = '0123456789'
let server: SharedServer
let url: string
let emptyUrl: string
beforeAll(async () => {
  server = await sharedServer()
  url = (await upload(server, text)).url
  emptyUrl = (await upload(server, '')).url
})

const get = (range: string, headers = {}) => fetch(url, { headers: { range, ...headers } })

test.each([
  ['the first bytes', 'bytes=0-3', '0123', 'bytes 0-3/10'],
  ['bytes in the middle', 'bytes=4-6', '456', 'bytes 4-6/10'],
  ['the last bytes', 'bytes=-3', '789', 'bytes 7-9/10'],
  ['all from a byte on', 'bytes=7-', '789', 'bytes 7-9/10'],
  ['one byte', 'bytes=5-5', '5', 'bytes 5-5/10'],
  ['the very last byte', 'bytes=9-9', '9', 'bytes 9-9/10'],
  ['everything', 'bytes=0-', text, 'bytes 0-9/10'],
  ['an end past the end', 'bytes=8-1000', '89', 'bytes 8-9/10'],
  ['an end past every end', 'bytes=8-99999999999999999999', '89', 'bytes 8-9/10'],
  ['a suffix longer than the file', 'bytes=-1000', text, 'bytes 0-9/10'],
  ['the unit in another case', 'Bytes=0-1', '01', 'bytes 0-1/10'],
])('B3 a range of %s gets a 206', async (_, range, part, contentRange) => {
  const response = await get(range)
  expect([response.status, await response.text()]).toEqual([206, part])
  expect(response.headers.get('content-range')).toBe(contentRange)
  expect(response.headers.get('content-length')).toBe(String(part.length))
})

test('B3, B2, B5 a 206 has the headers of the 200', async () => {
  const [whole, part] = [await fetch(url), await get('bytes=1-2')]
  for (const [name, value] of whole.headers) {
    if (['content-length', 'date', 'connection', 'keep-alive'].includes(name)) continue
    expect([name, part.headers.get(name)]).toEqual([name, value])
  }
})

test.each(['bytes=10-', 'bytes=10-20', 'bytes=99999999999999999999-', 'bytes=-0'])(
  'B3 %s begins after the end and is refused with 416',
  async (range) => {
    const response = await get(range)
    expect(response.headers.get('content-range')).toBe('bytes */10')
    expect(response.headers.get('etag')).toBe(null)
    await expectProblem(response, 416, 'range-unsatisfiable')
  },
)

test.each([
  'bytes=0-1,3-4',
  'bytes=0-1, 20-30',
  'bytes=',
  'bytes=-',
  'bytes',
  'bytes=a-b',
  'bytes=5-2',
  'bytes=1.5-3',
  'bytes=-1-3',
  'bytes=+1-3',
  'bytes=0x1-3',
  'bytes=0-1;x',
  'items=0-1',
  '0-1',
])('B3 several ranges, and a Range that is not in bytes, get the whole file: %s', async (range) => {
  const response = await get(range)
  expect([response.status, await response.text()]).toEqual([200, text])
  expect(response.headers.get('content-range')).toBe(null)
})

test('B3 ten thousand overlapping ranges return the whole file once', async () => {
  const parts = (count: number) => Array.from({ length: count }, () => '0-').join()
  const many = await get(`bytes=${parts(5_000)}`)
  expect([many.status, await many.text()]).toEqual([200, text])
  // Ten thousand ranges exceed the limit of the headers.
  const raw = `GET ${new URL(url).pathname} HTTP/1.1\r\nHost: x\r\nRange: bytes=${parts(10_000)}\r\n\r\n`
  expect((await sendRaw(server.url, raw)).status).toBe(431)
})

test('B3 a repeated Range header returns the whole file', async () => {
  const raw = `GET ${new URL(url).pathname} HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\nRange: bytes=2-3\r\nConnection: close\r\n\r\n`
  const response = await sendRaw(server.url, raw)
  expect([response.status, response.body]).toEqual([200, text])
})

test.each([
  ['bytes=0-', 416],
  ['bytes=0-0', 416],
  ['bytes=-0', 416],
  ['bytes=-1', 200],
  ['bytes=a', 200],
])('B3 %s of an empty file is a %d', async (range, status) => {
  const response = await fetch(emptyUrl, { headers: { range } })
  if (status === 200) expect([response.status, await response.text()]).toEqual([200, ''])
  else {
    expect(response.headers.get('content-range')).toBe('bytes */0')
    await expectProblem(response, 416, 'range-unsatisfiable')
  }
})

test('B3 HEAD ignores Range', async () => {
  for (const range of ['bytes=0-1', 'bytes=99-']) {
    const response = await fetch(url, { method: 'HEAD', headers: { range } })
    expect([response.status, response.headers.get('content-length')]).toEqual([200, '10'])
  }
})

test('B3, B4 with If-Range a changed item is returned whole', async () => {
  const { headers } = await fetch(url)
  const [tag, date] = [headers.get('etag') ?? '', headers.get('last-modified') ?? '']
  const earlier = new Date(Date.parse(date) - 60_000).toUTCString()
  const later = new Date(Date.parse(date) + 60_000).toUTCString()
  for (const [ifRange, status] of [
    [tag, 206],
    [date, 206],
    ['"other"', 200],
    [`W/${tag}`, 200],
    [`${tag}, "other"`, 200],
    ['*', 200],
    [earlier, 200],
    [later, 200],
    ['yesterday', 200],
  ] as const) {
    const response = await get('bytes=0-1', { 'if-range': ifRange })
    expect([ifRange, response.status, await response.text()]).toEqual([
      ifRange,
      status,
      status === 206 ? '01' : text,
    ])
  }
  expect((await get('bytes=99-', { 'if-range': '"other"' })).status).toBe(200)
  expect((await get('bytes=99-', { 'if-range': tag })).status).toBe(416)
  expect((await fetch(url, { headers: { 'if-range': tag } })).status).toBe(200)
})
