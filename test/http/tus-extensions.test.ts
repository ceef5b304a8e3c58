import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { checksumOf, chunkType, itemOf, metadataOf, tusHeaders } from '../harness/tus.ts'
import { type Requirement, startTus, unknown } from './tus-server.ts'

let tus: Awaited<ReturnType<typeof startTus>>
beforeAll(async () => {
  tus = await startTus()
})
afterAll(() => tus[Symbol.asyncDispose]())

/** The requirements of the extensions, in their order. */
const requirements: readonly Requirement[] = [
  [
    'R12 Creation, Upload-Defer-Length',
    'Its value MUST be 1. If the Upload-Defer-Length header contains any other value than 1 the server should return a 400 Bad Request status.',
    async () => {
      for (const sent of ['0', '2', 'true', ''])
        await expectProblem(await tus.post({ 'upload-defer-length': sent }), 400, 'upload-malformed')
    },
  ],
  [
    'R3 Creation, Upload-Defer-Length',
    'If the length of an upload is not deferred, this header MUST be omitted.',
    async () => {
      expect((await tus.head(await tus.unfinished())).headers.get('upload-defer-length')).toBeNull()
      const both = await tus.post({ 'upload-length': '10', 'upload-defer-length': '1' })
      await expectProblem(both, 400, 'upload-malformed')
    },
  ],
  [
    'R11 Creation, Upload-Metadata',
    'MUST consist of one or more comma-separated key-value pairs. The key and value MUST be separated by a space. The key MUST NOT contain spaces and commas and MUST NOT be empty. The key SHOULD be ASCII encoded and the value MUST be Base64 encoded. All keys MUST be unique.',
    async () => {
      const send = (metadata: string) => tus.post({ 'upload-length': '1', 'upload-metadata': metadata })
      for (const malformed of ['a b YQ==', 'a YQ', 'a _-_-', 'a YQ==,a YQ==', 'a,a'])
        await expectProblem(await send(malformed), 400, 'upload-malformed')
      expect((await send('a YQ==,is_confidential')).status).toBe(201)
      // RFC 9110, section 5.6.1. The Swift client sends spaces after commas.
      for (const list of [
        '',
        ',',
        'a YQ==,',
        'a YQ==, b YQ== ,,c',
        'filename YS50eHQ=, filetype dGV4dC9wbGFpbg==',
      ])
        expect((await send(list)).status, list).toBe(201)
    },
  ],
  [
    'R12 Creation, POST',
    'The request MUST include one of the following headers: a) Upload-Length […] b) Upload-Defer-Length: 1',
    async () => void (await expectProblem(await tus.post({}), 400, 'upload-malformed')),
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
      expect((await itemOf(tus.server, await tus.post({ 'upload-length': '0' }))).size).toBe(0)
      // A body of another type is not a chunk.
      expect((await itemOf(tus.server, await tus.post({ 'upload-length': '0' }, 'ignored'))).size).toBe(0)
      const chunk = await tus.post({ 'upload-length': '0', 'content-type': chunkType }, '')
      expect([(await itemOf(tus.server, chunk)).size, chunk.headers.get('upload-offset')]).toEqual([0, '0'])
    },
  ],
  [
    'R3 Creation, POST',
    'If an upload contains additional metadata, responses to HEAD requests MUST include the Upload-Metadata header and its value as specified by the Client during the creation.',
    async () => {
      const metadata = `${metadataOf({ filename: 'a.txt', Other: 'ö' })},empty`
      const url = await tus.unfinished({ 'upload-metadata': metadata })
      expect((await tus.head(url)).headers.get('upload-metadata')).toBe(metadata)
    },
  ],
  [
    'R12 Creation, POST',
    'If the length of the upload exceeds the maximum, […] the Server MUST respond with the 413 Request Entity Too Large status.',
    async () => {
      for (const length of ['1000001', '9007199254740991'])
        await expectProblem(await tus.post({ 'upload-length': length }), 413, 'file-too-large')
      expect((await tus.post({ 'upload-length': '1000000' })).status).toBe(201)
    },
  ],
  [
    'R1 Creation, POST',
    'The Server MUST acknowledge a successful upload creation with the 201 Created status. The Server MUST set the Location header to the URL of the created resource.',
    async () => {
      const response = await tus.post({ 'upload-length': '10' })
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
        const response = await tus.post({ 'upload-length': '10', ...type }, body)
        expect([response.status, response.headers.get('upload-offset')]).toEqual([201, `${body.length}`])
        expect(await tus.offset(response.headers.get('location') ?? '')).toBe(body.length)
      }
      const deferred = await tus.post({ 'upload-defer-length': '1', ...type }, 'abc')
      expect([deferred.status, deferred.headers.get('upload-offset')]).toEqual([201, '3'])
    },
  ],
  [
    'R8 Expiration',
    'This header MUST be included in every PATCH response if the upload is going to expire. If the expiration is known at the creation, the Upload-Expires header MUST be included in the response to the initial POST request. The value of the Upload-Expires header MUST be in RFC 9110 datetime format.',
    async () => {
      const created = await tus.post({ 'upload-length': '10' })
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
      const url = await tus.unfinished()
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
      const url = await tus.unfinished()
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
    async () => expect(await tus.optionOf('tus-checksum-algorithm')).toBe('sha1,sha256'),
  ],
  [
    'R9 Termination',
    'MUST respond with the 204 No Content status confirming that the upload was terminated. For all future requests to this URL, the Server SHOULD respond with the 404 Not Found or 410 Gone status.',
    async () => {
      const url = await tus.unfinished()
      expect((await tus.terminate(url)).status).toBe(204)
      for (const gone of [await tus.head(url), await tus.sendChunk(url, 4, 'e'), await tus.terminate(url)])
        expect(gone.status).toBe(404)
    },
  ],
  [
    'R12 Concatenation',
    'If the Server supports this extension, it MUST add concatenation to the Tus-Extension header.',
    async () => {
      expect(await tus.optionOf('tus-extension')).not.toContain('concatenation')
      for (const concat of ['partial', `final;${unknown}`]) {
        const response = await tus.post({ 'upload-length': '10', 'upload-concat': concat })
        expect((await expectProblem(response, 400, 'upload-malformed')).detail).toContain('Concatenation')
      }
    },
  ],
]

test.each(requirements)('%s: "%s"', async (_rule, _quotation, check) => check())

test('R8 a finished upload has no Upload-Expires', async () => {
  const url = await tus.unfinished()
  const last = await tus.sendChunk(url, 4, 'efghij')
  for (const response of [last, await tus.head(url)])
    expect(tusHeaders(response)).not.toHaveProperty('upload-expires')
})
