import { headerValue, hostileText, mutate } from './hostile.ts'
import type { Random } from './random.ts'
import type { Target } from './target.ts'

const methods = [
  'GET',
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'get',
  'G\0T',
  '',
] as const
const versions = [
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/2.0',
  'HTTP/9',
  'http/1.1',
  '',
] as const
const lineEnds = ['\r\n', '\r\n', '\r\n', '\r\n', '\n', '\r', '\r\n '] as const
const framings = [
  'Content-Length: 5',
  'Content-Length: -1',
  'Content-Length: 5, 5',
  'Content-Length: 5\r\nContent-Length: 6',
  'Content-Length: 99999999999999999999',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 5',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: xchunked',
  'Expect: 100-continue',
  'Expect: x',
  'Upgrade: websocket\r\nConnection: upgrade',
] as const
const paths = [
  '/',
  '/api/media',
  '/v1/media/',
  '/api/media/x',
  '/api/items?limit=1',
  '/api/uploads',
  '/api/uploads/x',
  '/media/x',
  '/healthz',
  '/metrics',
  '/docs',
  '/openapi.json',
  '/problems/x',
  '//',
  '*',
  'http://other/api/media',
  '/%',
] as const

/** Request heads that no client would send. They carry no token, so they store nothing. */
export async function fuzzHeads({ random, send }: Target): Promise<void> {
  const lines = [
    `${random.pick(methods)} ${random.pick(paths)}${hostileText(random)} ${random.pick(versions)}`,
  ]
  if (!random.oneIn(8)) lines.push(`Host: ${random.oneIn(4) ? headerValue(random) : 'x'}`)
  lines.push('Connection: close')
  if (random.oneIn(2)) lines.push(random.pick(framings))
  for (let more = random.below(4); more > 0; more -= 1)
    lines.push(`${random.oneIn(3) ? hostileText(random) : 'X-A'}: ${hostileText(random)}`)
  if (random.oneIn(30)) lines.push(...Array.from({ length: 3_000 }, (_, index) => `X-${index}: y`))
  const end = random.pick(lineEnds)
  const text = `${lines.join(end)}${end}${end}${random.oneIn(3) ? 'hello' : ''}`
  await send(random.oneIn(2) ? mutate(random, Buffer.from(text)) : text)
}

const valued = [
  'Range',
  'If-Range',
  'If-Match',
  'If-None-Match',
  'If-Modified-Since',
  'If-Unmodified-Since',
  'Accept',
  'Accept-Encoding',
  'Origin',
  'X-Forwarded-For',
  'Forwarded',
  'X-HTTP-Method-Override',
  'Tus-Resumable',
  'Upload-Length',
  'Upload-Offset',
  'Upload-Metadata',
  'Upload-Checksum',
  'Upload-Defer-Length',
  'Cookie',
  'Content-Type',
  'Content-Disposition',
  'Idempotency-Key',
] as const

const read = (random: Random, id: string): string =>
  random.pick([
    `/api/media?page=${encodeURIComponent(hostileText(random))}`,
    `/api/media?${encodeURIComponent(hostileText(random))}=${encodeURIComponent(hostileText(random))}`,
    `/media/${id}`,
    `/media/${id}?variant=${encodeURIComponent(hostileText(random))}`,
    `/media/${encodeURIComponent(hostileText(random))}`,
    `/api/media/${encodeURIComponent(hostileText(random))}`,
    `/api/uploads/${encodeURIComponent(hostileText(random))}`,
    `/api/items?limit=2&after=${encodeURIComponent(hostileText(random))}`,
    `/api/items?from=${encodeURIComponent(hostileText(random))}&kind=image`,
    '/api/bucket',
    '/api/token',
  ])

/** Valid requests with invalid values on all readable routes, and uploads into a separate bucket. */
export async function fuzzValues(target: Target): Promise<void> {
  const { random, send, otherToken } = target
  const stored = await send(
    `POST /api/media HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${otherToken}\r\nContent-Length: 5\r\n\r\nhello`,
  )
  const id = /"id":"(\w+)"/.exec(stored?.body ?? '')?.[1] ?? 'none'
  for (let time = 0; time < 4; time += 1) {
    const isWrite = random.oneIn(3)
    const method = isWrite ? 'POST' : random.pick(['GET', 'GET', 'HEAD', 'DELETE', 'PATCH'])
    const path = isWrite ? random.pick(['/api/media', '/api/uploads']) : read(random, id)
    const lines = [
      `${method} ${path} HTTP/1.1`,
      'Host: x',
      'Connection: close',
      `Authorization: ${random.oneIn(6) ? headerValue(random) : `Bearer ${otherToken}`}`,
      ...Array.from({ length: 1 + random.below(3) }, () => `${random.pick(valued)}: ${headerValue(random)}`),
    ]
    if (path === '/api/uploads' && random.oneIn(2)) lines.push('Tus-Resumable: 1.0.0')
    await send(Buffer.from(`${lines.join('\r\n')}\r\nContent-Length: 5\r\n\r\nhello`, 'latin1'))
  }
}
