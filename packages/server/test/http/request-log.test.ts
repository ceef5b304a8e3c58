import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { Metrics } from '../../src/http/metrics.ts'
import { createRequestLogger } from '../../src/http/request-log.ts'

/** The log line of a request to `url` with this status; null for a request that was aborted before its response. */
function lineFor(method: string, url: string, status: number | null): string {
  const lines: string[] = []
  const addresses = { wholeOfRequest: () => '192.0.2.1' }
  const written = { areWritten: () => true, write: (line: string) => void lines.push(line) }
  const record = createRequestLogger(new Metrics(), addresses, written, 'salt')
  const request = Object.assign(new IncomingMessage(new Socket()), { method, url })
  request.headers['user-agent'] = 'program "1"'
  const response = new ServerResponse(request)
  const trace = { traceId: '1'.repeat(32), parentId: '2'.repeat(16), spanId: '3'.repeat(16) }
  const line = record(request, response, {
    id: '0b7d2c9e-0000-4000-8000-000000000000',
    trace,
    route: '/r',
    kind: 'other',
  })
  line.token = 'tok_1'
  if (status !== null) response.writeHead(status).end()
  response.emit('close')
  expect(lines).toHaveLength(1)
  return lines[0] ?? ''
}

test.each([
  ['GET', '/api/media?page=2', 200, '/api/media'],
  ['PROPFIND', '/a"b\\c/é\u2028\u0001', 404, '/a"b\\c/é\u2028\u0001'],
  ['POST', '/v1/media/', null, '/v1/media/'],
])('O3 the line of %s %s equals that of the logger', (method, url, status, path) => {
  const line = lineFor(method, url, status)
  const { time, ms } = JSON.parse(line)
  const written: string[] = []
  const log = pino(
    { base: null, timestamp: () => `,"time":${time}` },
    { write: (text: string) => written.push(text) },
  )
  const requestId = '0b7d2c9e-0000-4000-8000-000000000000'
  // A response without a socket counts as aborted.
  const about = { bytes: 0, address: '192.0.2.1', userAgent: 'program "1"', token: 'tok_1' }
  const trace = { traceId: '1'.repeat(32), parentId: '2'.repeat(16), spanId: '3'.repeat(16) }
  log.info({ requestId, method, path, status, ms, ...about, ...trace }, 'aborted')
  expect(line).toBe(written[0])
  expect(Math.abs(Date.now() - time)).toBeLessThan(60_000)
  expect(ms * 10).toBeCloseTo(Math.round(ms * 10))
})
