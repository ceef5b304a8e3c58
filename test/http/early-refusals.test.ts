import { randomBytes } from 'node:crypto'
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
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { readCreatedToken, readItem } from '../harness/wire.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_WORKERS: '2', MEDIABUCKET_ADDRESS_RATE: 'off' })
})
afterAll(() => server[Symbol.asyncDispose]())

/** A token with limits, of a bucket without a quota. */
async function limited(limits: object) {
  const manager = await makeToken(
    server,
    ...['--bucket', uniqueName('limited'), '--scope', 'tokens:manage', '--scope', 'media:write'],
  )
  const response = await server.request('/api/tokens', {
    method: 'POST',
    headers: { authorization: manager.authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ scopes: ['media:write'], limits }),
  })
  const { token } = readCreatedToken(await response.json())
  return `Bearer ${token}`
}

/** Each limit, how a token that has it is made, and the problem. A megabyte is left of each limit of bytes. */
const limits: readonly (readonly [string, () => Promise<string>, number, string])[] = [
  ['the bytes of a token', () => limited({ max_bytes: 1_000_000 }), 507, 'token-limit-exceeded'],
  ['the file size of a token', () => limited({ max_file_size: 1_000_000 }), 413, 'file-too-large'],
  [
    'the bytes of a bucket',
    async () => (await bucketWith(server, '--max-bytes', '1MB')).authorization,
    507,
    'quota-exceeded',
  ],
]

/** A request without its body. */
const headOf = (method: string, path: string, headers: Readonly<Record<string, string>>) =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

/** The ways to declare 3 GB, with a key where a request may have one. */
const declarations: readonly (readonly [string, (authorization: string) => Promise<string>])[] = [
  ...['', 'key'].flatMap((key) => {
    const more = key === '' ? {} : { 'Idempotency-Key': key }
    const declared = (authorization: string, type: string) =>
      headOf('POST', '/api/media', {
        Authorization: authorization,
        'Content-Type': type,
        'Content-Length': '3000000000',
        ...more,
      })
    const keyed = key === '' ? '' : ' with an Idempotency-Key'
    return [
      [`a raw body${keyed}`, async (authorization: string) => declared(authorization, 'image/png')],
      [`a form${keyed}`, async (authorization: string) => declared(authorization, formType)],
    ] as const
  }),
  [
    'the creation of a resumable upload',
    async (authorization) =>
      headOf('POST', '/api/uploads', {
        Authorization: authorization,
        'Tus-Resumable': '1.0.0',
        'Upload-Length': '3000000000',
        'Content-Type': chunkType,
        'Content-Length': '3000000000',
      }),
  ],
  [
    'a chunk of a resumable upload without a length',
    async (authorization) =>
      headOf('PATCH', await tusOf(server, authorization).create({ 'upload-defer-length': '1' }), {
        Authorization: authorization,
        'Tus-Resumable': '1.0.0',
        'Upload-Offset': '0',
        'Content-Type': chunkType,
        'Content-Length': '3000000000',
      }),
  ],
]

async function refusalOf(connection: Connection) {
  await until('the response', () => connection.received().includes('\r\n\r\n'))
  return responseOf(parseResponse(connection.received()))
}

describe.each(limits)('Q2, T10, I2 what exceeds %s', (_, tokenOf, status, code) => {
  test.each(declarations)(
    'Q2, T10 by the Content-Length of %s is refused before any byte of it',
    async (_what, request) => {
      using connection = await openConnection(server.url)
      connection.send(await request(await tokenOf()))
      await expectProblem(await refusalOf(connection), status, code)
    },
  )

  test.each([
    ['a raw body', {}],
    ['a raw body with an Idempotency-Key', { 'Idempotency-Key': 'k' }],
  ])('Q2, T10 by a chunked body is refused at the limit: %s', async (_what, headers) => {
    const authorization = await tokenOf()
    using connection = await openConnection(server.url)
    connection.send(
      headOf('POST', '/api/media', {
        Authorization: authorization,
        'Content-Type': 'image/png',
        'Transfer-Encoding': 'chunked',
        ...headers,
      }),
    )
    const chunk = Buffer.concat([Buffer.from('10000\r\n'), randomBytes(65_536), Buffer.from('\r\n')])
    // 1 MB fits, and the rest is less than the buffers of a connection hold.
    for (let sent = 0; sent < 20; sent += 1) connection.send(chunk)
    await expectProblem(await refusalOf(connection), status, code)
    await until('the removal of the bytes', async () => (await countStored(server)).temporary === 0)
  })
})

test('T10, I2 a token without items left is refused before the body, and its repetitions are not', async () => {
  const authorization = await limited({ max_items: 1 })
  const bytes = randomBytes(300_000)
  const send = (key: string) =>
    server.request('/api/media', {
      method: 'POST',
      headers: { authorization, 'content-type': 'image/png', 'idempotency-key': key },
      body: bytes,
    })
  const first = await readItem(await send('first'))
  expect(await readItem(await send('first'))).toMatchObject({ id: first.id })
  for (const [key, length, status, code] of [
    ['second', 300_000, 507, 'token-limit-exceeded'],
    // More bytes than the first request with this key.
    ['first', 300_001, 422, 'idempotency-key-reused'],
  ] as const) {
    using connection = await openConnection(server.url)
    connection.send(
      headOf('POST', '/api/media', {
        Authorization: authorization,
        'Content-Type': 'image/png',
        'Content-Length': `${length}`,
        'Idempotency-Key': key,
      }),
    )
    await expectProblem(await refusalOf(connection), status, code)
  }
})

test('T10, I2 concurrent requests with one key, on several processes, have one response, also with space for one', async () => {
  for (const authorization of [
    await limited({ max_items: 1, max_bytes: 300_000 }),
    (await bucketWith(server, '--max-items', '1', '--max-bytes', '300kB')).authorization,
  ]) {
    const bytes = randomBytes(300_000)
    const responses = await Promise.all(
      Array.from({ length: 12 }, () =>
        server.request('/api/media', {
          method: 'POST',
          // Each on a connection of its own, which any process may accept.
          headers: {
            authorization,
            'content-type': 'image/png',
            'idempotency-key': 'k',
            connection: 'close',
          },
          body: bytes,
        }),
      ),
    )
    const ids = await Promise.all(responses.map(async (response) => (await readItem(response)).id))
    expect(new Set(ids).size).toBe(1)
  }
})
