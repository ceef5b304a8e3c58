import { createHash, randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Upload } from 'tus-js-client'
import { beforeAll, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { parseResponse } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { chunkType, itemOf, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'

let server: SharedServer
let tus: ReturnType<typeof tusOf>
beforeAll(async () => {
  server = await sharedServer()
  tus = tusOf(server)
})

/** A PATCH on its own connection, whose body is sent in parts. Without a length, the body is chunked. */
async function openPatch(url: string, length: number | null, extra: readonly string[] = []) {
  const connection = await openConnection(server.url)
  const head = [
    `PATCH ${url} HTTP/1.1`,
    'Host: x',
    `Authorization: Bearer ${server.token}`,
    'Tus-Resumable: 1.0.0',
    'Upload-Offset: 0',
    `Content-Type: ${chunkType}`,
    length === null ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`,
    ...extra,
  ]
  connection.send(`${head.join('\r\n')}\r\n\r\n`)
  return {
    ...connection,
    response: async () => {
      await until('a response', () => connection.received().includes('\r\n\r\n'))
      return parseResponse(connection.received())
    },
    [Symbol.dispose]: connection[Symbol.dispose],
  }
}

const sha1 = (text: string) => createHash('sha1').update(text).digest('base64')

/** Some requests on other connections, after which the server has read the bytes sent before. */
async function roundTrips(): Promise<void> {
  for (let time = 0; time < 5; time += 1) await server.request('/api/bucket')
}

test.each([10, 4])(
  'R5 a length of %d that one request declares while another writes 10 bytes: a complete upload names its item',
  async (declared) => {
    const url = await tus.create({ 'upload-defer-length': '1' })
    using writing = await openPatch(url, 10)
    writing.send('01234')
    await roundTrips()
    using declaring = await openPatch(url, 0, [`Upload-Length: ${declared}`])
    await roundTrips()
    writing.send('56789')
    const responses = [await writing.response(), await declaring.response()]
    expect(responses.map(({ status }) => status)).toEqual([204, 409])
    expect(responses[0]?.headers.get('upload-offset')).toBe('10')
    expect(responses[0]?.headers.get('content-location')).toBeUndefined()
    const head = await tus.head(url)
    expect(head.headers.get('upload-defer-length')).toBe('1')

    const last = await tus.sendChunk(url, 10, '', { 'upload-length': '10' })
    expect([last.status, last.headers.get('upload-offset')]).toEqual([204, '10'])
    const item = await itemOf(server, last)
    expect(await (await fetch(item.url)).text()).toBe('0123456789')
  },
)

test('R4, R7 a stalled chunk with a checksum is refused when another request takes over', async () => {
  const url = await tus.createWithLength(5)
  using stalled = await openPatch(url, 5, [`Upload-Checksum: sha1 ${sha1('01234')}`])
  stalled.send('012')
  await roundTrips()
  const whole = await tus.sendChunk(url, 0, '01234')
  expect([whole.status, whole.headers.get('upload-offset')]).toEqual([204, '5'])
  expect(await stalled.response()).toMatchObject({ status: 409 })
})

test('R4 a chunk of a finished upload whose body does not end is interrupted by a later request', async () => {
  const url = await tus.createWithLength(0)
  using stalled = await openPatch(url, null)
  await roundTrips()
  expect((await tus.terminate(url)).status).toBe(204)
  expect(await stalled.response()).toMatchObject({ status: 409 })
})

test('R3, R4 HEAD returns a durable offset and leaves a request alone that makes progress', async () => {
  const url = await tus.createWithLength(1_000)
  using writing = await openPatch(url, 1_000)
  let sent = 0
  let asked = true
  const bytes = 'x'.repeat(1_000)
  const send = (length: number) => {
    writing.send(bytes.slice(sent, sent + length))
    sent += length
  }
  async function goOn(): Promise<void> {
    for (; asked && sent < 900; await setTimeout(20)) send(2)
  }
  const going = goOn()
  for (const _ of [1, 2]) {
    const offset = await tus.offset(url)
    expect(offset).toBeLessThanOrEqual(sent)
  }
  asked = false
  await going
  send(1_000 - sent)
  const response = await writing.response()
  expect([response.status, response.headers.get('upload-offset')]).toEqual([204, '1000'])
})

/** A proxy that delays requests and passes responses at once. */
async function startSlowWay(): Promise<{ url: string } & AsyncDisposable> {
  const { hostname, port } = new URL(server.url)
  const way = createServer((client) => {
    const onward = connect(Number(port), hostname)
    onward.pipe(client)
    const slow = async () => {
      for await (const bytes of client)
        for (let at = 0; at < bytes.length; at += 500) {
          onward.write(bytes.subarray(at, at + 500))
          await setTimeout(20)
        }
    }
    slow().catch(() => onward.destroy())
    onward.on('error', () => client.destroy())
  })
  await new Promise<void>((resolve) => way.listen(0, '127.0.0.1', resolve))
  const address = way.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    async [Symbol.asyncDispose]() {
      way.close()
    },
  }
}

test('R4 tus-js-client without retries is not interrupted by HEAD requests of other clients', async () => {
  await using way = await startSlowWay()
  const bytes = randomBytes(60_000)
  const path = await tus.createWithLength(bytes.length)
  const done = new Promise<void>((resolve, reject) => {
    new Upload(bytes, {
      uploadUrl: `${way.url}${path}`,
      headers: { authorization: `Bearer ${server.token}` },
      retryDelays: [],
      onError: reject,
      onSuccess: () => resolve(),
    }).start()
  })
  await until('bytes arrive', () =>
    stat(join(server.data, path.replace('/api', ''))).then(
      ({ size }) => size > 0,
      () => false,
    ),
  )
  const heads = Array.from({ length: 3 }, () => tus.offset(path))
  await done
  for (const offset of await Promise.all(heads)) expect(offset).toBeLessThanOrEqual(bytes.length)
  expect((await itemOf(server, await tus.head(path))).size).toBe(bytes.length)
})
