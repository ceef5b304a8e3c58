import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:http2'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { describe, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { expectProblem } from '../harness/problem.ts'
import { openProxy, type ProxyKind } from '../harness/proxy.ts'
import { clientOf, codeOf, makePair, sendTarget, startS3Server } from '../harness/s3-door.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { readItem, readPage } from '../harness/wire.ts'

const megabyte = 1_000_000
const pattern = randomBytes(megabyte)
const sha256 = (parts: readonly Uint8Array[]) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex')

/** Bytes in the temporary files of uploads in progress. */
const received = ({ data }: TestServer): number =>
  readdirSync(join(data, 'tmp')).reduce((sum, name) => sum + statSync(join(data, 'tmp', name)).size, 0)

async function open(kind: ProxyKind) {
  const proxy = await openProxy(kind)
  const server = await startServer({
    MEDIABUCKET_BASE_URL: proxy.url,
    MEDIABUCKET_TRUSTED_PROXIES: 'loopback',
    MEDIABUCKET_AUTH_FAILURE_RATE: '2/1h',
    MEDIABUCKET_MAX_FILE_SIZE: '200MB',
  })
  await proxy.start(server.url)
  const authorization = `Bearer ${server.token}`
  return {
    proxy,
    server,
    authorization,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

describe.each(['nginx', 'nginx below a path', 'caddy'] as const)('behind %s as documented', (kind) => {
  test('L18, W1, B3, R6 uploads are streamed and can be resumed, and downloads have ranges', async () => {
    await using stage = await open(kind)
    const { proxy, server, authorization } = stage

    // 40 MB, of which the service has most of the first 25 MB before the rest is sent.
    const sending = request(`${proxy.url}/api/media`, {
      method: 'POST',
      headers: { authorization, 'content-length': 40 * megabyte, 'content-type': 'application/x-large' },
    })
    const answered = new Promise<Response>((resolve, reject) => {
      sending.once('error', reject)
      sending.once('response', async (response) =>
        resolve(new Response(await text(response), { status: response.statusCode ?? 0 })),
      )
    })
    for (let count = 0; count < 25; count++) sending.write(pattern)
    await until('most of the first part has reached the service', () => received(server) > 20 * megabyte)
    expect(await proxy.buffered()).toEqual([])
    for (let count = 25; count < 40; count++) sending.write(pattern)
    sending.end()
    const stored = await readItem(await answered)
    expect(stored).toMatchObject({ size: 40 * megabyte, sha256: sha256(Array(40).fill(pattern)) })
    expect(stored.url.startsWith(`${proxy.url}/media/`)).toBe(true)

    const download = await fetch(stored.url)
    const whole = createHash('sha256')
    for await (const chunk of Readable.fromWeb(download.body as never)) whole.update(chunk)
    expect(whole.digest('hex')).toBe(stored.sha256)
    const part = await fetch(stored.url, { headers: { range: `bytes=${megabyte + 7}-${megabyte + 16}` } })
    expect([part.status, part.headers.get('content-range')]).toEqual([
      206,
      `bytes ${megabyte + 7}-${megabyte + 16}/${40 * megabyte}`,
    ])
    expect(Buffer.from(await part.arrayBuffer())).toEqual(pattern.subarray(7, 17))

    // A resumable upload keeps the received bytes when its connection breaks.
    const tus = { authorization, 'tus-resumable': '1.0.0' }
    const length = 5 * megabyte
    const creation = await fetch(`${proxy.url}/api/uploads`, {
      method: 'POST',
      headers: { ...tus, 'upload-length': `${length}` },
    })
    const location = creation.headers.get('location') ?? ''
    expect([creation.status, location.startsWith(`${proxy.url}/api/uploads/`)]).toEqual([201, true])
    const headers = { ...tus, 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' }
    using connection = await openConnection(proxy.url)
    connection.send(
      `PATCH ${new URL(location).pathname} HTTP/1.1\r\nHost: ${new URL(proxy.url).host}\r\nContent-Length: ${length}\r\n${Object.entries(
        headers,
      )
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join('')}\r\n`,
    )
    for (let count = 0; count < 3; count++) connection.send(pattern)
    const parts = () =>
      readdirSync(join(server.data, 'uploads')).map(
        (name) => statSync(join(server.data, 'uploads', name)).size,
      )
    await until('some of it has arrived', () => Math.max(0, ...parts()) > 2 * megabyte)
    connection[Symbol.dispose]()
    const offset = await until('the broken request has ended', async () => {
      const response = await fetch(location, { method: 'HEAD', headers: tus })
      return response.status === 200 && Number(response.headers.get('upload-offset'))
    })
    expect(offset).toBeGreaterThan(2 * megabyte)
    const all = Buffer.concat(Array(5).fill(pattern))
    const finished = await fetch(location, {
      method: 'PATCH',
      headers: { ...headers, 'upload-offset': `${offset}` },
      body: all.subarray(offset),
    })
    expect(finished.status).toBe(204)
    const item = finished.headers.get('content-location') ?? ''
    expect(
      await readItem(await fetch(new URL(item, `${proxy.url}/`), { headers: { authorization } })),
    ).toMatchObject({
      sha256: sha256([all]),
    })

    const page = await readPage(await fetch(`${proxy.url}/api/media/`, { headers: { authorization } }))
    expect([page.total, page.path]).toEqual([2, `${proxy.url}/api/media`])
    expect((await fetch(`${proxy.url}/metrics`)).status).toBe(404)
    expect(await (await fetch(`${proxy.url}/`)).text()).toContain('<script type="module"')
  })

  test('U6, W1 the service, not the proxy, refuses large uploads and counts requests by client address', async () => {
    await using stage = await open(kind)
    const { proxy, authorization } = stage
    const headers = { authorization, 'content-length': `${300 * megabyte}`, expect: '100-continue' }
    const refused = await new Promise<Response>((resolve, reject) => {
      const asked = request(`${proxy.url}/api/media`, { method: 'POST', headers })
      asked.once('error', reject)
      asked.once('response', async (response) => {
        resolve(
          new Response(await text(response), {
            status: response.statusCode ?? 0,
            headers: response.headers as never,
          }),
        )
        asked.destroy()
      })
      asked.flushHeaders()
    })
    await expectProblem(refused, 413, 'file-too-large')

    const statusOf = async (address: string) =>
      (
        await fetch(`${proxy.url}/api/media`, {
          headers: { authorization: `Bearer mbkt_${'0'.repeat(38)}`, 'x-forwarded-for': address },
        })
      ).status
    // nginx appends the address of its peer; the service uses the right-most one that is not a proxy. Caddy replaces it.
    const statuses = []
    for (let count = 0; count < 4; count++) statuses.push(await statusOf('203.0.113.9'))
    expect(statuses).toEqual([401, 401, 429, 429])
  })
})

test('nginx as documented speaks HTTP/2 with TLS', async () => {
  await using stage = await open('nginx')
  const client = connect(stage.proxy.secureUrl, { rejectUnauthorized: false })
  try {
    const asked = client.request({ ':path': '/api/media', authorization: stage.authorization })
    const status = new Promise((resolve) => asked.once('response', (headers) => resolve(headers[':status'])))
    expect(JSON.parse(await text(asked))).toMatchObject({ total: 0, path: `${stage.proxy.url}/api/media` })
    expect(await status).toBe(200)
  } finally {
    client.close()
  }
})

describe.each(['nginx for the port of S3', 'caddy for the port of S3'] as const)(
  'behind %s as documented',
  (kind) => {
    test('SP2, OK1, SP7 signed requests reach the service as they were signed, with keys of every kind', async () => {
      await using proxy = await openProxy(kind)
      await using stage = await startS3Server({
        MEDIABUCKET_TRUSTED_PROXIES: 'loopback',
        MEDIABUCKET_AUTH_FAILURE_RATE: '2/1h',
      })
      await proxy.start(stage.endpoint)
      const pair = await makePair(stage.server, '--bucket', 'photos')
      for (const key of ['a.txt', 'a//b/../c', '/', 'a b+c?d#e%2F&=;', 'ä \u{1f5fa}', 'a\r\n\u0001']) {
        const target = `/photos/${key.split('/').map(encodeURIComponent).join('/')}`
        const put = await sendTarget(pair, proxy.url, target, { method: 'PUT', body: target })
        const got = await sendTarget(pair, proxy.url, target)
        expect([put.status, got.status, got.body]).toEqual([200, 200, target])
      }
      const statusOf = async (address: string) =>
        (
          await sendTarget({ ...pair, secretAccessKey: 'wrong' }, proxy.url, '/photos/a.txt', {
            unsigned: { 'x-forwarded-for': address },
          })
        ).status
      // nginx appends the address of its peer; the service uses the right-most one that is not a proxy. Caddy replaces it.
      const statuses = []
      for (let count = 0; count < 4; count++) statuses.push(await statusOf('203.0.113.9'))
      expect(statuses).toEqual([403, 403, 503, 503])
    })

    test('SP3, OK2 uploads are streamed, and downloads have ranges', async () => {
      await using proxy = await openProxy(kind)
      await using stage = await startS3Server({ MEDIABUCKET_MAX_FILE_SIZE: '200MB' })
      await proxy.start(stage.endpoint)
      const client = clientOf(proxy.url, await makePair(stage.server, '--bucket', 'photos'))
      const at = { Bucket: 'photos', Key: 'large' }
      const body = new PassThrough()
      const sending = client.send(new PutObjectCommand({ ...at, Body: body, ContentLength: 40 * megabyte }))
      for (let count = 0; count < 25; count++) body.write(pattern)
      await until(
        'most of the first part has reached the service',
        () => received(stage.server) > 20 * megabyte,
      )
      expect(await proxy.buffered()).toEqual([])
      for (let count = 25; count < 40; count++) body.write(pattern)
      body.end()
      await sending
      const { Body } = await client.send(
        new GetObjectCommand({ ...at, Range: `bytes=${megabyte + 7}-${megabyte + 16}` }),
      )
      expect(Buffer.from((await Body?.transformToByteArray()) ?? [])).toEqual(pattern.subarray(7, 17))
      const large = sendTarget(
        await makePair(stage.server, '--bucket', 'photos'),
        proxy.url,
        '/photos/too-large',
        {
          method: 'PUT',
          body: '',
          payloadHash: 'UNSIGNED-PAYLOAD',
          unsigned: { 'content-length': `${300 * megabyte}` },
        },
      )
      expect(codeOf(await large)).toBe('400 EntityTooLarge')
      client.destroy()
    })
  },
)
