import { createHash, randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { bucketWith } from '../harness/bucket.ts'
import { openConnection } from '../harness/connection.ts'
import { expectProblem } from '../harness/problem.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { checksumOf, chunkType, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { readItem } from '../harness/wire.ts'

let server: SharedServer
let tus: ReturnType<typeof tusOf>
beforeAll(async () => {
  server = await sharedServer()
  tus = tusOf(server)
})

const sendChunk = (url: string, offset: number, body: string | Uint8Array<ArrayBuffer>, checksum: string) =>
  tus.sendChunk(url, offset, body, { 'upload-checksum': checksum })

describe('R7 a checksum', () => {
  test.each(['sha1', 'sha256'])('of %s that matches: the chunk is stored', async (algorithm) => {
    const bytes = randomBytes(100_000)
    const url = await tus.createWithLength(bytes.length)
    const [first, second] = [bytes.subarray(0, 70_000), bytes.subarray(70_000)]
    expect((await sendChunk(url, 0, first, checksumOf(algorithm, first))).status).toBe(204)
    const last = await sendChunk(url, 70_000, second, checksumOf(algorithm, second))
    const location = new URL(last.headers.get('content-location') ?? '').pathname
    const { sha256 } = await readItem(await server.request(location))
    expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
  })

  test.each(['sha1', 'sha256'])(
    'of %s that does not match receives a 460 problem, and the offset does not change',
    async (algorithm) => {
      const bytes = randomBytes(10_000)
      const url = await tus.createWithLength(bytes.length)
      await sendChunk(url, 0, bytes.subarray(0, 4_000), checksumOf(algorithm, bytes.subarray(0, 4_000)))
      const wrong = checksumOf(algorithm, 'something else')
      for (const end of [7_000, 10_000]) {
        await expectProblem(
          await sendChunk(url, 4_000, bytes.subarray(4_000, end), wrong),
          460,
          'checksum-mismatch',
        )
        expect(await tus.offset(url)).toBe(4_000)
      }
      const rest = bytes.subarray(4_000)
      const last = await sendChunk(url, 4_000, rest, checksumOf(algorithm, rest))
      const location = new URL(last.headers.get('content-location') ?? '').pathname
      const { sha256 } = await readItem(await server.request(location))
      expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
    },
  )

  test.each([
    ['of an unknown algorithm', checksumOf('md5', 'abc')],
    ['of a name in capitals', checksumOf('sha1', 'abc').replace('sha1', 'SHA1')],
    ['of __proto__', '__proto__ AAAA'],
    ['without a value', 'sha1'],
    ['with an empty value', 'sha1 '],
    ['of another length', `sha256 ${createHash('sha1').update('abc').digest('base64')}`],
    ['in hex', `sha1 ${createHash('sha1').update('abc').digest('hex')}`],
    ['without padding', checksumOf('sha1', 'abc').replaceAll('=', '')],
    ['in the other alphabet', `sha256 ${createHash('sha256').update('abc').digest('base64url')}`],
    ['with two values', `${checksumOf('sha1', 'abc')} x`],
    ['twice', `${checksumOf('sha1', 'abc')}, ${checksumOf('sha1', 'abc')}`],
  ])('%s gets a 400 problem, and the offset stays', async (_, checksum) => {
    const url = await tus.createWithLength(3)
    await expectProblem(await sendChunk(url, 0, 'abc', checksum), 400, 'checksum-malformed')
    expect(await tus.offset(url)).toBe(0)
  })

  test('applies to the chunk in a creation', async () => {
    const create = (checksum: string) =>
      tus.send(
        'POST',
        '/api/uploads',
        { 'upload-length': '3', 'content-type': chunkType, 'upload-checksum': checksum },
        'abc',
      )
    await expectProblem(await create(checksumOf('sha1', 'abd')), 460, 'checksum-mismatch')
    expect((await create(checksumOf('sha1', 'abc'))).headers.get('upload-offset')).toBe('3')
  })

  // 70,000 bytes are more than a file that is stored in the catalog.
  test.each([
    { what: 'a small file', length: 3, sent: 3 },
    { what: 'a large file', length: 70_000, sent: 70_000 },
    { what: 'a part of a file', length: 70_000, sent: 3 },
  ])('R1 of $what in a creation that does not match: no upload is left', async ({ length, sent }) => {
    const bucket = await bucketWith(server, '--max-bytes', `${length}`, '--max-items', '1')
    const create = (checksum: string) =>
      bucket.tus.send(
        'POST',
        '/api/uploads',
        { 'upload-length': `${length}`, 'content-type': chunkType, 'upload-checksum': checksum },
        'x'.repeat(sent),
      )
    const refused = await create(checksumOf('sha1', 'y'))
    expect(refused.headers.get('location')).toBeNull()
    await expectProblem(refused, 460, 'checksum-mismatch')
    expect(await bucket.state()).toMatchObject({ reserved_items: 0, reserved_bytes: 0, items: 0 })
    expect((await create(checksumOf('sha1', 'x'.repeat(sent)))).status).toBe(201)
  })

  test('of an interrupted chunk: no byte of it is stored', async () => {
    // Larger than a file that is stored in the catalog.
    const url = await tus.createWithLength(70_000)
    const { port } = new URL(server.url)
    {
      using connection = await openConnection(server.url)
      const head = [
        `PATCH ${url} HTTP/1.1`,
        `Host: 127.0.0.1:${port}`,
        `Authorization: Bearer ${server.token}`,
        'Tus-Resumable: 1.0.0',
        'Upload-Offset: 0',
        `Content-Type: ${chunkType}`,
        `Upload-Checksum: ${checksumOf('sha1', 'x'.repeat(70_000))}`,
        'Content-Length: 70000',
      ].join('\r\n')
      connection.send(`${head}\r\n\r\n${'x'.repeat(600)}`)
      await until('the chunk has arrived in part', () => sizeOfPart(url).then((size) => size === 600))
    }
    expect(await tus.offset(url)).toBe(0)
  })
})

async function sizeOfPart(url: string): Promise<number> {
  return stat(join(server.data, 'uploads', url.split('/').at(-1) ?? '')).then(
    ({ size }) => size,
    () => -1,
  )
}
