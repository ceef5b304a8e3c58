import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import fc from 'fast-check'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { Metrics } from '../../src/http/metrics.ts'
import { createRequestLogger, type RequestLogger } from '../../src/http/request-log.ts'

/** What a line has besides method, path and status. */
interface About {
  readonly address: string | null
  readonly userAgent?: string
  readonly token?: string
  readonly trace: { readonly traceId: string; readonly parentId: string; readonly spanId: string } | null
}

const requestId = '0b7d2c9e-0000-4000-8000-000000000000'

const known: About = {
  address: '192.0.2.1',
  userAgent: 'program "1"',
  token: 'tok_1',
  trace: { traceId: '1'.repeat(32), parentId: '2'.repeat(16), spanId: '3'.repeat(16) },
}

const unknown: About = { address: null, trace: null }

/** A request to `url`. Its status is null if it was aborted before its response. */
interface Logged {
  readonly method: string
  readonly url: string
  readonly status: number | null
  readonly about: About
  readonly refused?: string | undefined
}

/** Returns a function that logs a request and returns its line. */
function createLines(): (logged: Logged) => string {
  const lines: string[] = []
  let address: string | null = null
  const addresses = { wholeOfRequest: () => address }
  const written = { areWritten: () => true, write: (line: string) => void lines.push(line) }
  const record = createRequestLogger(new Metrics(), addresses, written, 'salt')
  return (logged) => {
    address = logged.about.address
    log(record, logged)
    expect(lines).toHaveLength(1)
    return lines.pop() ?? ''
  }
}

function log(record: RequestLogger, { method, url, status, about, refused }: Logged): void {
  const request = Object.assign(new IncomingMessage(new Socket()), { method, url })
  if (about.userAgent !== undefined) request.headers['user-agent'] = about.userAgent
  const response = new ServerResponse(request)
  const line = record(request, response, { id: requestId, trace: about.trace, route: '/r', kind: 'other' })
  line.token = about.token
  line.refused = refused
  if (status !== null) response.writeHead(status).end()
  response.emit('close')
}

test.each([
  ['GET', '/api/media?page=2', 200, '/api/media', known],
  ['PROPFIND', '/a"b\\c/é\u2028\u0001\ud800', 404, '/a"b\\c/é\u2028\u0001\ud800', known],
  ['POST', '/v1/media/', null, '/v1/media/', known],
  ['GET', '/api/media', 401, '/api/media', unknown],
])('O3 the line of %s %s equals that of the logger', (method, url, status, path, about) => {
  const refused = about === unknown ? 'Bearer mbkt_refused' : undefined
  const line = createLines()({ method, url, status, about, refused })
  const { time, ms, tokenFingerprint } = JSON.parse(line)
  if (refused !== undefined) expect(tokenFingerprint).toMatch(/^[0-9a-f]{8}$/)
  const written: string[] = []
  const log = pino(
    { base: null, timestamp: () => `,"time":${time}` },
    { write: (text: string) => written.push(text) },
  )
  const { trace, ...others } = about
  // A response without a socket counts as aborted.
  log.info(
    { requestId, method, path, status, ms, bytes: 0, ...others, tokenFingerprint, ...trace },
    'aborted',
  )
  expect(line).toBe(written[0])
  expect(Math.abs(Date.now() - time)).toBeLessThan(60_000)
  expect(ms * 10).toBeCloseTo(Math.round(ms * 10))
})

/** Few values of each member, so that lines often differ from the line before in one of them only. */
const similar = fc.record({
  method: fc.constant('GET'),
  url: fc.constantFrom('/a', '/a?page=2', '/b', '/media/x.jpg', `/${'%61'.repeat(20)}`, '/"'),
  status: fc.constant(200),
  about: fc.record({
    address: fc.constantFrom(null, '192.0.2.1', '2001:db8::1'),
    userAgent: fc.constantFrom('', 'program', 'program "1"', `${'x'.repeat(201)}`),
    token: fc.constantFrom('tok_1', 'tok_2'),
    trace: fc.constant(null),
  }),
})

test('O3 no line has a member of another one', () => {
  const withoutTimes = (line: string) => line.replace(/"time":\d+/, '').replace(/"ms":[\d.]+/, '')
  fc.assert(
    fc.property(fc.array(similar, { maxLength: 20 }), (all) => {
      const shared = createLines()
      for (const logged of all) expect(withoutTimes(shared(logged))).toBe(withoutTimes(createLines()(logged)))
    }),
  )
})
