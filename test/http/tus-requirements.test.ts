import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { expectProblem } from '../harness/problem.ts'
import { chunkType, itemOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { type Requirement, startTus, unknown } from './tus-server.ts'

let tus: Awaited<ReturnType<typeof startTus>>
beforeAll(async () => {
  tus = await startTus()
})
afterAll(() => tus[Symbol.asyncDispose]())

/** One request of every method on an upload. */
async function allResponses(headers: Record<string, string>): Promise<Response[]> {
  const url = await tus.createWithLength(10)
  const chunk = { 'content-type': chunkType, 'upload-offset': '0', ...headers }
  return [
    await tus.post({ 'upload-length': '10', ...headers }),
    await tus.send('HEAD', url, headers),
    await tus.send('PATCH', url, chunk, 'abcd'),
    await tus.send('POST', url, { ...chunk, 'x-http-method-override': 'PATCH', 'upload-offset': '4' }, 'e'),
    await tus.send('DELETE', url, headers),
  ]
}

/** The requirements of the core protocol, in their order. Those of the extensions are in tus-extensions.test.ts. */
const requirements: readonly Requirement[] = [
  [
    'R4 Upload-Offset',
    'The value MUST be a non-negative integer.',
    async () => {
      const url = await tus.unfinished()
      for (const sent of ['-4', '4.5', 'four', '4e0', ''])
        await expectProblem(
          await tus.sendChunk(url, 4, 'e', { 'upload-offset': sent }),
          400,
          'upload-malformed',
        )
      expect((await tus.head(url)).headers.get('upload-offset')).toBe('4')
    },
  ],
  [
    'R12 Upload-Length',
    'The value MUST be a non-negative integer.',
    async () => {
      // The last one is how JavaScript prints a very large number.
      for (const sent of ['-1', '1.5', 'ten', '', '1e+21'])
        await expectProblem(await tus.post({ 'upload-length': sent }), 400, 'upload-malformed')
    },
  ],
  [
    'R2 Tus-Version',
    'MUST be a comma-separated list of protocol versions supported by the Server.',
    async () => expect(await tus.optionOf('tus-version')).toBe('1.0.0'),
  ],
  [
    'R2 Tus-Resumable',
    'MUST be included in every request and response except for OPTIONS requests.',
    async () => {
      const responses = [...(await allResponses({})), await tus.head(unknown), await tus.post({})]
      expect(responses.map(({ status }) => status)).toEqual([201, 200, 204, 204, 204, 404, 400])
      for (const { headers } of responses) expect(headers.get('tus-resumable')).toBe('1.0.0')
      const without = await fetch(`${tus.server.url}/api/uploads`, {
        method: 'POST',
        headers: { authorization: `Bearer ${tus.server.token}`, 'upload-length': '1' },
      })
      await expectProblem(without, 412, 'upload-version-unsupported')
    },
  ],
  [
    'R2 Tus-Resumable',
    'it MUST respond with the 412 Precondition Failed status and MUST include the Tus-Version header into the response. In addition, the Server MUST NOT process the request.',
    async () => {
      for (const response of await allResponses({ 'tus-resumable': '0.2.2' })) {
        expect([response.status, response.headers.get('tus-version')]).toEqual([412, '1.0.0'])
      }
      const url = await tus.unfinished()
      await tus.sendChunk(url, 4, 'efghij', { 'tus-resumable': '2.0.0' })
      await tus.send('DELETE', url, { 'tus-resumable': '2.0.0' })
      expect(await tus.offset(url)).toBe(4)
    },
  ],
  [
    'R2 Tus-Extension',
    'MUST be a comma-separated list of the extensions supported by the Server.',
    async () =>
      expect((await tus.optionOf('tus-extension')).split(',').sort()).toEqual([
        'checksum',
        'creation',
        'creation-defer-length',
        'creation-with-upload',
        'expiration',
        'termination',
      ]),
  ],
  [
    'R2 Tus-Max-Size',
    'MUST be a non-negative integer indicating the maximum allowed size of an entire upload in bytes.',
    async () => expect(await tus.optionOf('tus-max-size')).toBe('1000000'),
  ],
  [
    'R13 X-HTTP-Method-Override',
    "MUST be interpreted as the request's method by the Server, if the header is presented. The actual method of the request MUST be ignored.",
    async () => {
      const url = await tus.createWithLength(10)
      const as = (method: string, headers = {}, body?: string) =>
        tus.send('POST', url, { 'x-http-method-override': method, ...headers }, body)
      const patch = await as('PATCH', { 'content-type': chunkType, 'upload-offset': '0' }, 'abcd')
      expect([patch.status, patch.headers.get('upload-offset')]).toEqual([204, '4'])
      expect((await as('HEAD')).headers.get('upload-offset')).toBe('4')
      expect((await as('DELETE')).status).toBe(204)
      expect((await tus.head(url)).status).toBe(404)
    },
  ],
  [
    'R3 HEAD',
    'The Server MUST always include the Upload-Offset header in the response for a HEAD request, even if the offset is 0, or the upload is already considered completed.',
    async () => {
      const url = await tus.createWithLength(4)
      expect((await tus.head(url)).headers.get('upload-offset')).toBe('0')
      await tus.sendChunk(url, 0, 'abcd')
      expect((await tus.head(url)).headers.get('upload-offset')).toBe('4')
    },
  ],
  [
    'R3 HEAD',
    'If the size of the upload is known, the Server MUST include the Upload-Length header in the response.',
    async () => expect((await tus.head(await tus.unfinished())).headers.get('upload-length')).toBe('10'),
  ],
  [
    'R10 HEAD',
    'If the resource is not found, the Server SHOULD return either the 404 Not Found, 410 Gone or 403 Forbidden status without the Upload-Offset header.',
    async () => {
      const { status, headers } = await tus.head(unknown)
      expect([status, headers.get('upload-offset')]).toEqual([404, null])
    },
  ],
  [
    'R3 HEAD',
    'The Server MUST prevent the client and/or proxies from caching the response by adding the Cache-Control: no-store header to the response.',
    async () =>
      expect((await tus.head(await tus.unfinished())).headers.get('cache-control')).toBe('no-store'),
  ],
  [
    'R4 PATCH',
    'All PATCH requests MUST use Content-Type: application/offset+octet-stream, otherwise the server SHOULD return a 415 Unsupported Media Type status.',
    async () => {
      const url = await tus.unfinished()
      for (const type of ['application/octet-stream', 'text/plain', 'application/offset'])
        await expectProblem(
          await tus.sendChunk(url, 4, 'e', { 'content-type': type }),
          415,
          'upload-type-unsupported',
        )
      expect(await tus.offset(url)).toBe(4)
      // Media types ignore case and may have parameters (RFC 9110, section 8.3.1).
      for (const [offset, type] of [chunkType.toUpperCase(), `${chunkType}; charset=binary`].entries())
        expect((await tus.sendChunk(url, 4 + offset, 'e', { 'content-type': type })).status).toBe(204)
    },
  ],
  [
    'R4 PATCH',
    'If the offsets do not match, the Server MUST respond with the 409 Conflict status without modifying the upload resource.',
    async () => {
      const url = await tus.unfinished()
      for (const offset of [0, 3, 5, 10])
        await expectProblem(await tus.sendChunk(url, offset, 'e'), 409, 'upload-offset-conflict')
      const last = await tus.sendChunk(url, 4, 'efghij')
      expect(await (await fetch((await itemOf(tus.server, last)).url)).text()).toBe('abcdefghij')
    },
  ],
  [
    'R4 PATCH',
    'The Server MUST acknowledge successful PATCH requests with the 204 No Content status. It MUST include the Upload-Offset header containing the new offset. The new offset MUST be the sum of the offset before the PATCH request and the number of bytes received and processed or stored during the current PATCH request.',
    async () => {
      const url = await tus.createWithLength(10)
      for (const [offset, body, sum] of [
        [0, 'abc', '3'],
        [3, '', '3'],
        [3, 'defg', '7'],
        [7, 'hij', '10'],
      ] as const) {
        const { status, headers } = await tus.sendChunk(url, offset, body)
        expect([status, headers.get('upload-offset')]).toEqual([204, sum])
      }
    },
  ],
  [
    'R10 PATCH',
    'If the server receives a PATCH request against a non-existent resource it SHOULD return a 404 Not Found status.',
    async () => void (await expectProblem(await tus.sendChunk(unknown, 0, 'a'), 404, 'upload-unknown')),
  ],
  [
    'R6 PATCH',
    'The Server SHOULD always attempt to store as much of the received data as possible.',
    async () => {
      // Larger than a file that is stored in the catalog.
      const url = await tus.createWithLength(70_000)
      {
        using connection = await openConnection(tus.server.url)
        const head = `PATCH ${url} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tus.server.token}\r\nTus-Resumable: 1.0.0\r\n`
        const chunk = `Upload-Offset: 0\r\nContent-Type: ${chunkType}\r\nContent-Length: 70000\r\n\r\nabcdef`
        connection.send(head + chunk)
        const file = join(tus.server.data, 'uploads', url.split('/').at(-1) ?? '')
        await until('the bytes are received', async () => existsSync(file) && (await stat(file)).size === 6)
      }
      expect(await tus.offset(url)).toBe(6)
    },
  ],
  [
    'R2 OPTIONS',
    'A successful response indicated by the 204 No Content or 200 OK status MUST contain the Tus-Version header. The Client SHOULD NOT include the Tus-Resumable header in the request and the Server MUST ignore the header.',
    async () => {
      for (const headers of [{}, { 'tus-resumable': '0.0.1' }]) {
        const response = await fetch(`${tus.server.url}/api/uploads`, { method: 'OPTIONS', headers })
        expect([response.status, response.headers.get('tus-version')]).toEqual([204, '1.0.0'])
      }
    },
  ],
]

test.each(requirements)('%s: "%s"', async (_rule, _quotation, check) => check())
