import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bucketWith } from '../harness/bucket.ts'
import { type Connection, openConnection } from '../harness/connection.ts'
import { formType } from '../harness/form.ts'
import { expectProblem } from '../harness/problem.ts'
import { parseResponse, responseOf } from '../harness/raw-http.ts'
import { countStored } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { chunkType, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'

let server: TestServer
let reader: string
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '1MB' })
  reader = (await makeToken(server, '--bucket', 'default', '--scope', 'media:read')).token
})
afterAll(() => server[Symbol.asyncDispose]())

/** The headers of an upload that waits for `100 Continue`. */
function head(
  options: { token?: string; length?: number; line?: string; expect?: string; version?: string } = {},
) {
  const {
    token = server.token,
    length = 4,
    line = 'Accept: */*',
    expect = '100-continue',
    version = '1.1',
  } = options
  return `POST /api/media HTTP/${version}\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nExpect: ${expect}\r\nContent-Length: ${length}\r\n${line}\r\n\r\n`
}

const statuses = (connection: Connection) =>
  [...connection.received().matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))
const untilStatuses = (connection: Connection, ...expected: number[]) =>
  until(`the statuses ${expected}`, () => `${statuses(connection)}` === `${expected}`)

describe('U11 a refusal comes before the body', () => {
  test.each([
    ['no token', 401, 'token-malformed', () => head({ token: 'x' })],
    ['a missing scope', 403, 'scope-missing', () => head({ token: reader })],
    ['a declared length', 413, 'file-too-large', () => head({ length: 1_000_001 })],
    ['a content coding', 415, 'content-coding-unsupported', () => head({ line: 'Content-Encoding: gzip' })],
    [
      'a form without boundary',
      400,
      'form-malformed',
      () => head({ line: 'Content-Type: multipart/form-data' }),
    ],
    ['a malformed name', 400, 'filename-malformed', () => head({ line: 'Content-Disposition: "' })],
  ])('for %s', async (_, status, code, lines) => {
    const before = await countStored(server)
    using connection = await openConnection(server.url)
    connection.send(lines())
    await connection.closed
    const response = parseResponse(connection.received())
    expect(response.headers.get('connection')).toBe('close')
    await expectProblem(responseOf(response), status, code)
    expect(await countStored(server)).toEqual(before)
  })

  test('U11 a body that is sent nevertheless is not parsed as a request', async () => {
    using connection = await openConnection(server.url)
    const smuggled = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
    connection.send(head({ token: 'x', length: smuggled.length }) + smuggled)
    await connection.closed
    expect(statuses(connection)).toEqual([401])
  })
})

test('U11, Q2, S4 a form of which no reading fits is refused before its body', async () => {
  await using large = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '1TB' })
  const small = await bucketWith(large, '--max-bytes', '5MB')
  async function send(length: number, authorization: string) {
    const connection = await openConnection(large.url)
    connection.send(head({ length, line: `Content-Type: ${formType}`, token: authorization.slice(7) }))
    return connection
  }
  const terabyte = 1_000_000_000_000
  const refused: [number, string, number, string][] = [
    [1_001 * terabyte, `Bearer ${large.token}`, 413, 'file-too-large'],
    [999 * terabyte, `Bearer ${large.token}`, 507, 'storage-full'],
    [1_100_000_000, small.authorization, 507, 'quota-exceeded'],
  ]
  for (const [length, authorization, status, code] of refused) {
    using connection = await send(length, authorization)
    await connection.closed
    await expectProblem(responseOf(parseResponse(connection.received())), status, code)
  }
  // A thousand fields of 1 MB fit.
  using connection = await send(1_000_000_000, small.authorization)
  await untilStatuses(connection, 100)
})

describe('U11 an accepted upload gets 100 Continue', () => {
  test.each(['100-continue', '100-Continue', '100-continue, 100-continue'])(
    'for Expect: %s',
    async (expect) => {
      using connection = await openConnection(server.url)
      connection.send(head({ expect }))
      await untilStatuses(connection, 100)
      connection.send('body')
      await untilStatuses(connection, 100, 201)
      connection.send(head({ expect }))
      await untilStatuses(connection, 100, 201, 100)
      connection.send('body')
      await untilStatuses(connection, 100, 201, 100, 201)
      connection.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
      await untilStatuses(connection, 100, 201, 100, 201, 200)
    },
  )

  test('U11 a client need not wait for it', async () => {
    using connection = await openConnection(server.url)
    connection.send(`${head()}body`)
    await untilStatuses(connection, 100, 201)
    connection.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await untilStatuses(connection, 100, 201, 200)
  })

  test('U11 a form that is refused later gets it too, and its connection stays usable', async () => {
    using connection = await openConnection(server.url)
    connection.send(head({ line: `Content-Type: ${formType}` }))
    await untilStatuses(connection, 100)
    connection.send('junk')
    await untilStatuses(connection, 100, 400)
    connection.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await untilStatuses(connection, 100, 400, 200)
  })

  test('U11 an HTTP/1.0 client does not get it', async () => {
    using connection = await openConnection(server.url)
    connection.send(`${head({ version: '1.0' })}body`)
    await connection.closed
    expect(statuses(connection)).toEqual([201])
  })
})

describe('U11 a resumable upload', () => {
  const chunk = (method: string, path: string, lines: Record<string, string | number>) => {
    const headers = {
      Host: 'x',
      Authorization: `Bearer ${server.token}`,
      Expect: '100-continue',
      'Tus-Resumable': '1.0.0',
      'Content-Type': chunkType,
      'Content-Length': 4,
      ...lines,
    }
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    return `${method} ${path} HTTP/1.1\r\n${head.join('')}\r\n`
  }

  test.each([
    ['another token', 401, { Authorization: 'Bearer x' }],
    ['another scope', 403, () => ({ Authorization: `Bearer ${reader}` })],
    ['another version', 412, { 'Tus-Resumable': '0.2.2' }],
    ['another offset', 409, { 'Upload-Offset': 4 }],
    ['too many bytes', 413, { 'Content-Length': 11 }],
    ['another type', 415, { 'Content-Type': 'text/plain' }],
    ['a content coding', 415, { 'Content-Encoding': 'gzip' }],
    ['an unknown checksum', 400, { 'Upload-Checksum': 'md5 YQ==' }],
  ])('refuses a chunk with %s before its bytes', async (_, status, lines) => {
    const url = await tusOf(server).createWithLength(10)
    using connection = await openConnection(server.url)
    const changed = typeof lines === 'function' ? lines() : lines
    connection.send(chunk('PATCH', url, { 'Upload-Offset': 0, ...changed }))
    await connection.closed
    expect(statuses(connection)).toEqual([status])
    expect(await tusOf(server).offset(url)).toBe(0)
  })

  test('refuses a creation that is too large before its bytes', async () => {
    using connection = await openConnection(server.url)
    connection.send(chunk('POST', '/api/uploads', { 'Upload-Length': 1_000_001 }))
    await connection.closed
    expect(statuses(connection)).toEqual([413])
  })

  test('gets 100 Continue for each accepted chunk', async () => {
    using connection = await openConnection(server.url)
    connection.send(chunk('POST', '/api/uploads', { 'Upload-Length': 12 }))
    await untilStatuses(connection, 100)
    connection.send('abcd')
    await untilStatuses(connection, 100, 201)
    const location = /^location: (\S+)/im.exec(connection.received())?.[1] ?? ''
    const url = new URL(location).pathname
    connection.send(chunk('PATCH', url, { 'Upload-Offset': 4 }))
    await untilStatuses(connection, 100, 201, 100)
    connection.send('efgh')
    await untilStatuses(connection, 100, 201, 100, 204)
    connection.send(chunk('POST', url, { 'Upload-Offset': 8, 'X-HTTP-Method-Override': 'PATCH' }))
    await untilStatuses(connection, 100, 201, 100, 204, 100)
    connection.send('ijkl')
    await untilStatuses(connection, 100, 201, 100, 204, 100, 204)
    expect(await tusOf(server).offset(url)).toBe(12)
  })

  test('can be resumed after its client disconnected before the bytes', async () => {
    const tus = tusOf(server)
    const url = await tus.createWithLength(4)
    {
      using connection = await openConnection(server.url)
      connection.send(chunk('PATCH', url, { 'Upload-Offset': 0 }))
      await untilStatuses(connection, 100)
    }
    const { status, headers } = await tus.sendChunk(url, 0, 'abcd')
    expect([status, headers.get('upload-offset')]).toEqual([204, '4'])
  })
})

test('U11 an operation without a body does not let the client wait', async () => {
  using connection = await openConnection(server.url)
  connection.send(head().replace('POST /api/media', 'DELETE /api/media/x'))
  await untilStatuses(connection, 100)
  connection.send('body')
  await untilStatuses(connection, 100, 404)
  connection.send(head({ length: 100_000_000 }).replace('POST /api/media', 'DELETE /api/media/x'))
  await connection.closed
  expect(statuses(connection)).toEqual([100, 404, 413])
})

test('U11 curl is refused before it sends the body, or gets 100 Continue', async () => {
  const path = join(server.data, 'file')
  await writeFile(path, Buffer.alloc(500_000))
  const curl = async (token: string) => {
    const args = [
      '-sS',
      '-o',
      '/dev/null',
      '-v',
      '-w',
      '%{http_code} %{size_upload}',
      // By default, curl sends the body after one second without a response.
      '--expect100-timeout',
      '60',
      '--data-binary',
      `@${path}`,
    ]
    const headers = ['-H', `Authorization: Bearer ${token}`, '-H', 'Expect: 100-continue']
    return await promisify(execFile)('curl', [...args, ...headers, `${server.url}/api/media`])
  }
  expect((await curl(reader)).stdout).toBe('403 0')
  const accepted = await curl(server.token)
  expect(accepted.stdout).toBe('201 500000')
  expect(accepted.stderr).toContain('< HTTP/1.1 100 Continue')
})
