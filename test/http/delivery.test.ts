import { beforeAll, describe, expect, test } from 'vitest'
import { sendRaw } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { upload } from '../harness/upload.ts'
import { readItem } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const bytes = (...parts: (string | number)[]) =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.alloc(part))),
  )

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const script = '<script>alert(document.domain)</script>'
const svg = `<svg xmlns="http://www.w3.org/2000/svg">${script}</svg>`
const html = `<!doctype html><html><body>${script}</body></html>`

/** A file, its name and declared type, its stored type, and its disposition. */
const kinds = [
  ['a picture', png, 'a.png', 'image/png', 'image/png', 'inline'],
  ['a GIF', bytes('GIF89a\x01\x00\x01\x00', 20), 'a.gif', 'image/gif', 'image/gif', 'inline'],
  ['a JPEG', bytes('\xff\xd8\xff\xe0\x00\x10JFIF\x00', 20), 'a.jpg', 'image/jpeg', 'image/jpeg', 'inline'],
  ['a WebP', bytes('RIFF\x1a\x00\x00\x00WEBPVP8L', 20), 'a.webp', 'image/webp', 'image/webp', 'inline'],
  [
    'a video',
    bytes('\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42', 20),
    'a.mp4',
    'video/mp4',
    'video/mp4',
    'inline',
  ],
  ['a sound', bytes('RIFF\x24\x00\x00\x00WAVEfmt ', 30), 'a.wav', 'audio/wav', 'audio/wav', 'inline'],
  ['a FLAC', bytes('fLaC\x00\x00\x00\x22', 40), 'a.flac', 'audio/flac', 'audio/flac', 'inline'],
  ['plain text', bytes('hello'), 'a.txt', 'text/plain', 'text/plain; charset=utf-8', 'inline'],
  [
    'text in Latin-1',
    bytes('caf\xe9'),
    'a.txt',
    'text/plain; charset=ISO-8859-1',
    'text/plain; charset=iso-8859-1',
    'inline',
  ],
  ['text in an unknown charset', bytes('caf\xe9'), 'a.txt', 'text/plain', 'text/plain', 'inline'],
  [
    'text in UTF-16',
    Buffer.from('\ufeffa', 'utf16le'),
    'a.txt',
    'text/plain',
    'text/plain; charset=utf-16',
    'inline',
  ],
  ['HTML', bytes(html), 'a.html', 'text/html', 'text/html; charset=utf-8', 'attachment'],
  [
    'HTML that claims to be a picture',
    bytes(html),
    'a.png',
    'image/png',
    'application/octet-stream',
    'attachment',
  ],
  ['HTML that claims to be text', bytes(html), 'a.txt', 'text/plain', 'text/plain; charset=utf-8', 'inline'],
  ['SVG', bytes(svg), 'a.svg', 'image/svg+xml', 'image/svg+xml', 'attachment'],
  [
    'SVG with an XML declaration',
    bytes(`<?xml version="1.0"?>${svg}`),
    'a.svg',
    'image/svg+xml',
    'image/svg+xml',
    'attachment',
  ],
  [
    'SVG that claims to be a picture',
    bytes(svg),
    'a.png',
    'image/png',
    'application/octet-stream',
    'attachment',
  ],
  ['XML', bytes('<?xml version="1.0"?><a/>'), 'a.xml', 'application/xml', 'application/xml', 'attachment'],
  [
    'XHTML',
    bytes(`<?xml version="1.0"?>${html}`),
    'a.xhtml',
    'application/xhtml+xml',
    'application/xhtml+xml',
    'attachment',
  ],
  ['a script', bytes('alert(1)'), 'a.js', 'text/javascript', 'text/javascript; charset=utf-8', 'attachment'],
  ['JSON', bytes('{}'), 'a.json', 'application/json', 'application/json', 'attachment'],
  ['a table', bytes('a,b'), 'a.csv', 'text/csv', 'text/csv; charset=utf-8', 'attachment'],
  ['an archive', bytes('PK\x05\x06', 18), 'a.zip', 'application/zip', 'application/zip', 'attachment'],
  [
    'a GIF that is also a script',
    bytes(`GIF89a/*\x01\x00${script}*/=1;`),
    'a.js',
    'text/javascript',
    'image/gif',
    'inline',
  ],
  ['a picture that claims to be HTML', png, 'a.html', 'text/html', 'image/png', 'inline'],
  ['bytes of no kind', bytes(64), 'a', '', 'application/octet-stream', 'attachment'],
] as const

test.each(kinds)(
  'B5, B6 %s is served with a safe type, disposition and policy',
  async (_, content, name, type, storedType, disposition) => {
    const { url } = await upload(server, content, { name, type })
    for (const init of [{}, { method: 'HEAD' }, { headers: { range: 'bytes=0-0' } }]) {
      const { headers } = await fetch(url, init)
      expect(headers.get('content-type')).toBe(storedType)
      expect(headers.get('content-disposition')?.split(';')[0]).toBe(disposition)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin')
      expect(policyOf(headers)).toEqual(sandboxed)
    }
    const saved = await fetch(`${url}?download`)
    expect(saved.headers.get('content-disposition')).toBe(`attachment; filename=${name}`)
    expect(saved.headers.get('vary')).toContain('Sec-Fetch-Dest')
    expect(await saved.bytes()).toEqual(new Uint8Array(content))
  },
)

/** All directives, so that an added one fails the test: no source is allowed, and no permission in the sandbox. */
const sandboxed = new Map([
  ['default-src', "'none'"],
  ['style-src', "'unsafe-inline'"],
  ['sandbox', ''],
])
const policyOf = (headers: Headers) =>
  new Map(
    (headers.get('content-security-policy') ?? '').split('; ').map((directive) => {
      const [name = '', ...values] = directive.split(' ')
      return [name, values.join(' ')]
    }),
  )

test('B5, B6 PDF is served inline without the sandbox, which breaks its viewer', async () => {
  const { url } = await upload(server, '%PDF-1.7\n%âãÏÓ\n', { name: 'a.pdf', type: 'application/pdf' })
  const { headers } = await fetch(url)
  expect(headers.get('content-type')).toBe('application/pdf')
  expect(headers.get('content-disposition')).toBe('inline; filename=a.pdf')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin')
  expect(headers.get('content-security-policy')).toBe(null)
})

test('B5 problems and 304 responses have the same headers', async () => {
  const { url } = await upload(server, 'hello')
  const tag = (await fetch(url)).headers.get('etag') ?? ''
  for (const [path, headers, status] of [
    [url, { 'if-none-match': tag }, 304],
    [url, { 'if-match': '"x"' }, 412],
    [url, { range: 'bytes=99-' }, 416],
    [`${server.url}/media/x`, {}, 404],
  ] as const) {
    const response = await fetch(path, { headers })
    expect(response.status).toBe(status)
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('cross-origin-resource-policy')).toBe('cross-origin')
    expect(policyOf(response.headers)).toEqual(sandboxed)
  }
})

describe('B6 names', () => {
  /** Stores a raw body with this name and returns the raw headers of its download. */
  async function download(name: string) {
    const disposition = `attachment; filename*=UTF-8''${encodeURIComponent(name).replace(/['()*]/g, escape)}`
    const headers = { 'content-disposition': disposition, 'content-type': 'text/plain' }
    const stored = await readItem(await server.request('/api/media', { method: 'POST', body: 'x', headers }))
    const path = new URL(stored.url).pathname
    const response = await sendRaw(server.url, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    return { stored, response, disposition: response.headers.get('content-disposition') ?? '' }
  }

  test.each([
    ['plain', 'a.txt', 'inline; filename=a.txt'],
    ['with spaces', 'a b.txt', 'inline; filename="a b.txt"'],
    ['with quotes', 'a"b\'c.txt', 'inline; filename="a\\"b\'c.txt"'],
    ['with separators', 'a;b=c,d.txt', 'inline; filename="a;b=c,d.txt"'],
    [
      'not in ASCII',
      '€ 日本.txt',
      'inline; filename="? ??.txt"; filename*=UTF-8\'\'%E2%82%AC%20%E6%97%A5%E6%9C%AC.txt',
    ],
    ['of markup', '<img src=x onerror=alert(1)>.txt', 'inline; filename="<img src=x onerror=alert(1)>.txt"'],
    [
      'that looks encoded',
      'a%0d%0ab.txt',
      "inline; filename=a%0d%0ab.txt; filename*=UTF-8''a%250d%250ab.txt",
    ],
  ])('B6 a name %s is sent as RFC 6266 says', async (_, name, expected) => {
    const { stored, disposition } = await download(name)
    expect(stored.filename).toBe(name)
    expect(disposition).toBe(expected)
  })

  test.each([
    ['line breaks', 'a\r\nSet-Cookie: x=1\r\n\r\n<b>.txt'],
    ['NUL and controls', 'a\0\x01\x7f\x85b.txt'],
    ['bidirectional overrides', 'a\u202Etxt.exe'],
    ['a path', '../../../etc/passwd'],
    ['a path of Windows', '..\\..\\boot.ini'],
    ['ten thousand bytes', `${'a'.repeat(10_000)}.txt`],
    ['two thousand letters of two bytes', `${'ü'.repeat(2_000)}.txt`],
    ['line separators', 'a\u2028b\u2029c.txt'],
    ['nothing but dots', '..'],
  ])('B6, U8 a name with %s injects nothing', async (_, name) => {
    const { response, disposition } = await download(name)
    expect(response.status).toBe(200)
    expect(response.body).toBe('x')
    expect(response.headers.get('set-cookie')).toBe(undefined)
    expect(disposition).toMatch(
      /^(inline|attachment)(; filename=("[\x20-\x7e]*"|[\w.-]+))?(; filename\*=UTF-8''[\w.%-]+)?$/,
    )
    expect(disposition).not.toMatch(/[/\\]|%2f|%5c|%0d|%0a|%00|%E2%80%AE/i)
    expect(disposition.length).toBeLessThan(1_500)
  })
})
