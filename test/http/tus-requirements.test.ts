import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { checksumOf, chunkType, itemOf, metadataOf, tusHeaders, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'

let server: TestServer
let tus: ReturnType<typeof tusOf>
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '1MB' })
  tus = tusOf(server)
})
afterAll(() => server[Symbol.asyncDispose]())

const unknown = '/api/uploads/0123456789abcdefghjkmnpqrs'
const create = (headers: Record<string, string>, body?: string) =>
  tus.send('POST', '/api/uploads', headers, body)
const options = () => fetch(`${server.url}/api/uploads`, { method: 'OPTIONS' })
const optionOf = async (name: string) => (await options()).headers.get(name) ?? ''

/** An upload of ten bytes, four of which are stored. */
async function unfinishedUpload(headers: Record<string, string> = {}): Promise<string> {
  const url = await tus.createWithLength(10, headers)
  await tus.sendChunk(url, 0, 'abcd')
  return url
}

/** One request of every method on an upload. */
async function allResponses(headers: Record<string, string>): Promise<Response[]> {
  const url = await tus.createWithLength(10)
  const chunk = { 'content-type': chunkType, 'upload-offset': '0', ...headers }
  return [
    await create({ 'upload-length': '10', ...headers }),
    await tus.send('HEAD', url, headers),
    await tus.send('PATCH', url, chunk, 'abcd'),
    await tus.send('POST', url, { ...chunk, 'x-http-method-override': 'PATCH', 'upload-offset': '4' }, 'e'),
    await tus.send('DELETE', url, headers),
  ]
}

/** The requirements of tus 1.0.0 for servers, quoted in their order, with the matching rules of docs/interface.md. */
const requirements: readonly (readonly [rule: string, quotation: string, check: () => Promise<void>])[] = [
  [
    'R4 Upload-Offset',
    'The value MUST be a non-negative integer.',
    async () => {
      const url = await unfinishedUpload()
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
        await expectProblem(await create({ 'upload-length': sent }), 400, 'upload-malformed')
    },
  ],
  [
    'R2 Tus-Version',
    'MUST be a comma-separated list of protocol versions supported by the Server.',
    async () => expect(await optionOf('tus-version')).toBe('1.0.0'),
  ],
  [
    'R2 Tus-Resumable',
    'MUST be included in every request and response except for OPTIONS requests.',
    async () => {
      const responses = [...(await allResponses({})), await tus.head(unknown), await create({})]
      expect(responses.map(({ status }) => status)).toEqual([201, 200, 204, 204, 204, 404, 400])
      for (const { headers } of responses) expect(headers.get('tus-resumable')).toBe('1.0.0')
      const without = await fetch(`${server.url}/api/uploads`, {
        method: 'POST',
        headers: { authorization: `Bearer ${server.token}`, 'upload-length': '1' },
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
      const url = await unfinishedUpload()
      await tus.sendChunk(url, 4, 'efghij', { 'tus-resumable': '2.0.0' })
      await tus.send('DELETE', url, { 'tus-resumable': '2.0.0' })
      expect(await tus.offset(url)).toBe(4)
    },
  ],
  [
    'R2 Tus-Extension',
    'MUST be a comma-separated list of the extensions supported by the Server.',
    async () =>
      expect((await optionOf('tus-extension')).split(',').sort()).toEqual([
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
    async () => expect(await optionOf('tus-max-size')).toBe('1000000'),
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
    async () => expect((await tus.head(await unfinishedUpload())).headers.get('upload-length')).toBe('10'),
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
      expect((await tus.head(await unfinishedUpload())).headers.get('cache-control')).toBe('no-store'),
  ],
  [
    'R4 PATCH',
    'All PATCH requests MUST use Content-Type: application/offset+octet-stream, otherwise the server SHOULD return a 415 Unsupported Media Type status.',
    async () => {
      const url = await unfinishedUpload()
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
      const url = await unfinishedUpload()
      for (const offset of [0, 3, 5, 10])
        await expectProblem(await tus.sendChunk(url, offset, 'e'), 409, 'upload-offset-conflict')
      const last = await tus.sendChunk(url, 4, 'efghij')
      expect(await (await fetch((await itemOf(server, last)).url)).text()).toBe('abcdefghij')
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
        using connection = await openConnection(server.url)
        const head = `PATCH ${url} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nTus-Resumable: 1.0.0\r\n`
        const chunk = `Upload-Offset: 0\r\nContent-Type: ${chunkType}\r\nContent-Length: 70000\r\n\r\nabcdef`
        connection.send(head + chunk)
        const file = join(server.data, 'uploads', url.split('/').at(-1) ?? '')
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
        const response = await fetch(`${server.url}/api/uploads`, { method: 'OPTIONS', headers })
        expect([response.status, response.headers.get('tus-version')]).toEqual([204, '1.0.0'])
      }
    },
  ],
  [
    'R12 Creation, Upload-Defer-Length',
    'Its value MUST be 1. If the Upload-Defer-Length header contains any other value than 1 the server should return a 400 Bad Request status.',
    async () => {
      for (const sent of ['0', '2', 'true', ''])
        await expectProblem(await create({ 'upload-defer-length': sent }), 400, 'upload-malformed')
    },
  ],
  [
    'R3 Creation, Upload-Defer-Length',
    'If the length of an upload is not deferred, this header MUST be omitted.',
    async () => {
      expect((await tus.head(await unfinishedUpload())).headers.get('upload-defer-length')).toBeNull()
      const both = await create({ 'upload-length': '10', 'upload-defer-length': '1' })
      await expectProblem(both, 400, 'upload-malformed')
    },
  ],
  [
    'R11 Creation, Upload-Metadata',
    'MUST consist of one or more comma-separated key-value pairs. The key and value MUST be separated by a space. The key MUST NOT contain spaces and commas and MUST NOT be empty. The key SHOULD be ASCII encoded and the value MUST be Base64 encoded. All keys MUST be unique.',
    async () => {
      const send = (metadata: string) => create({ 'upload-length': '1', 'upload-metadata': metadata })
      for (const malformed of ['', 'a b YQ==', 'a YQ==, YQ==', 'a YQ', 'a _-_-', 'a YQ==,a YQ==', 'a,,b'])
        await expectProblem(await send(malformed), 400, 'upload-malformed')
      expect((await send('a YQ==,is_confidential')).status).toBe(201)
    },
  ],
  [
    'R12 Creation, POST',
    'The request MUST include one of the following headers: a) Upload-Length […] b) Upload-Defer-Length: 1',
    async () => void (await expectProblem(await create({}), 400, 'upload-malformed')),
  ],
  [
    'R4 Creation, POST',
    'Once set the length MUST NOT be changed. As long as the length of the upload is not known, the Server MUST set Upload-Defer-Length: 1 in all responses to HEAD requests.',
    async () => {
      const url = await tus.create({ 'upload-defer-length': '1' })
      for (const offset of [0, 1]) {
        const { headers } = await tus.head(url)
        expect([headers.get('upload-defer-length'), headers.get('upload-length')]).toEqual(['1', null])
        await tus.sendChunk(url, offset, 'a')
      }
      expect((await tus.sendChunk(url, 2, 'a', { 'upload-length': '5' })).status).toBe(204)
      for (const length of ['4', '6'])
        await expectProblem(
          await tus.sendChunk(url, 3, 'a', { 'upload-length': length }),
          400,
          'upload-malformed',
        )
      const { headers } = await tus.head(url)
      expect([headers.get('upload-defer-length'), headers.get('upload-length')]).toEqual([null, '5'])
      // The same length again is allowed: clients repeat it when they retry.
      expect((await tus.sendChunk(url, 3, 'aa', { 'upload-length': '5' })).headers.get('upload-offset')).toBe(
        '5',
      )
    },
  ],
  [
    'R1 Creation, POST',
    'The Upload-Length header MAY be set to 0 […]. Such an upload is immediately complete after its creation without transferring data using PATCH requests.',
    async () => {
      expect((await itemOf(server, await create({ 'upload-length': '0' }))).size).toBe(0)
      // A body of another type is not a chunk.
      expect((await itemOf(server, await create({ 'upload-length': '0' }, 'ignored'))).size).toBe(0)
      const chunk = await create({ 'upload-length': '0', 'content-type': chunkType }, '')
      expect([(await itemOf(server, chunk)).size, chunk.headers.get('upload-offset')]).toEqual([0, '0'])
    },
  ],
  [
    'R3 Creation, POST',
    'If an upload contains additional metadata, responses to HEAD requests MUST include the Upload-Metadata header and its value as specified by the Client during the creation.',
    async () => {
      const metadata = `${metadataOf({ filename: 'a.txt', Other: 'ö' })},empty`
      const url = await unfinishedUpload({ 'upload-metadata': metadata })
      expect((await tus.head(url)).headers.get('upload-metadata')).toBe(metadata)
    },
  ],
  [
    'R12 Creation, POST',
    'If the length of the upload exceeds the maximum, […] the Server MUST respond with the 413 Request Entity Too Large status.',
    async () => {
      for (const length of ['1000001', '9007199254740991'])
        await expectProblem(await create({ 'upload-length': length }), 413, 'file-too-large')
      expect((await create({ 'upload-length': '1000000' })).status).toBe(201)
    },
  ],
  [
    'R1 Creation, POST',
    'The Server MUST acknowledge a successful upload creation with the 201 Created status. The Server MUST set the Location header to the URL of the created resource.',
    async () => {
      const response = await create({ 'upload-length': '10' })
      expect(response.status).toBe(201)
      expect(await tus.offset(response.headers.get('location') ?? '')).toBe(0)
    },
  ],
  [
    'R1 Creation With Upload',
    'The Server […] MUST include the Upload-Offset header in the response and MUST set its value to the offset of the upload after applying the accepted bytes.',
    async () => {
      const type = { 'content-type': chunkType }
      for (const body of ['', 'abc', 'abcdefghij']) {
        const response = await create({ 'upload-length': '10', ...type }, body)
        expect([response.status, response.headers.get('upload-offset')]).toEqual([201, `${body.length}`])
        expect(await tus.offset(response.headers.get('location') ?? '')).toBe(body.length)
      }
      const deferred = await create({ 'upload-defer-length': '1', ...type }, 'abc')
      expect([deferred.status, deferred.headers.get('upload-offset')]).toEqual([201, '3'])
    },
  ],
  [
    'R8 Expiration',
    'This header MUST be included in every PATCH response if the upload is going to expire. If the expiration is known at the creation, the Upload-Expires header MUST be included in the response to the initial POST request. The value of the Upload-Expires header MUST be in RFC 9110 datetime format.',
    async () => {
      const created = await create({ 'upload-length': '10' })
      const url = created.headers.get('location') ?? ''
      for (const { headers } of [
        created,
        await tus.sendChunk(url, 0, 'a'),
        await tus.sendChunk(url, 1, ''),
      ]) {
        const expires = headers.get('upload-expires') ?? ''
        expect(new Date(expires).toUTCString()).toBe(expires)
      }
    },
  ],
  [
    'R7 Checksum',
    'Once the entire request has been received, the Server MUST verify the uploaded chunk against the provided checksum […]. In the first two cases the uploaded chunk MUST be discarded, and the upload and its offset MUST NOT be updated.',
    async () => {
      const url = await unfinishedUpload()
      const send = (checksum: string) => tus.sendChunk(url, 4, 'efg', { 'upload-checksum': checksum })
      await expectProblem(await send(checksumOf('md5', 'efg')), 400, 'checksum-malformed')
      await expectProblem(await send(checksumOf('sha1', 'xyz')), 460, 'checksum-mismatch')
      expect(await tus.offset(url)).toBe(4)
      expect((await send(checksumOf('sha1', 'efg'))).headers.get('upload-offset')).toBe('7')
    },
  ],
  [
    'R7 Checksum',
    'The header MUST consist of the name of the used checksum algorithm and the Base64 encoded checksum separated by a space.',
    async () => {
      const url = await unfinishedUpload()
      for (const sent of ['sha1', checksumOf('sha1', 'e').replace(' ', ':'), `${checksumOf('sha1', 'e')} x`])
        await expectProblem(
          await tus.sendChunk(url, 4, 'e', { 'upload-checksum': sent }),
          400,
          'checksum-malformed',
        )
    },
  ],
  [
    'R2 Checksum',
    'The Server MUST support at least the SHA1 checksum algorithm identified by sha1. The Tus-Checksum-Algorithm header MUST be included in the response to an OPTIONS request. […] MUST be a comma-separated list of the checksum algorithms supported by the server.',
    async () => expect(await optionOf('tus-checksum-algorithm')).toBe('sha1,sha256'),
  ],
  [
    'R9 Termination',
    'MUST respond with the 204 No Content status confirming that the upload was terminated. For all future requests to this URL, the Server SHOULD respond with the 404 Not Found or 410 Gone status.',
    async () => {
      const url = await unfinishedUpload()
      expect((await tus.terminate(url)).status).toBe(204)
      for (const gone of [await tus.head(url), await tus.sendChunk(url, 4, 'e'), await tus.terminate(url)])
        expect(gone.status).toBe(404)
    },
  ],
  [
    'R12 Concatenation',
    'If the Server supports this extension, it MUST add concatenation to the Tus-Extension header.',
    async () => {
      expect(await optionOf('tus-extension')).not.toContain('concatenation')
      for (const concat of ['partial', `final;${unknown}`]) {
        const response = await create({ 'upload-length': '10', 'upload-concat': concat })
        expect((await expectProblem(response, 400, 'upload-malformed')).detail).toContain('Concatenation')
      }
    },
  ],
]

test.each(requirements)('%s: "%s"', async (_rule, _quotation, check) => check())

test('R8 a finished upload has no Upload-Expires', async () => {
  const url = await unfinishedUpload()
  const last = await tus.sendChunk(url, 4, 'efghij')
  for (const response of [last, await tus.head(url)])
    expect(tusHeaders(response)).not.toHaveProperty('upload-expires')
})
