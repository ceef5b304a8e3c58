import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readPage } from '../harness/wire.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '50000' })
})
afterAll(() => server[Symbol.asyncDispose]())

const head = (path: string, headers: readonly string[]) =>
  [`POST ${path} HTTP/1.1`, 'Host: h', ...headers, '', ''].join('\r\n')

const authorization = () => `Authorization: Bearer ${server.token}`

const activeUploads = async () =>
  /^mediabucket_active_uploads (\d+)$/m.exec(await (await fetch(`${server.url}/metrics`)).text())?.[1]

const Id = Type.Object({ id: Type.String() })

describe('small files', () => {
  test.each([
    ...['a/b', 'a/b;', 'a/b; c', 'a/b ;c=d', ' a/b', 'A/B; c="d"'].map((type) => [type, 201] as const),
    ...['nonsense', '', 'a/b c', 'a/b/c', 'a/"b"'].map((type) => [type, 400] as const),
  ])('U3, P1 the Content-Type "%s" gets a %i, with and without a Content-Length', async (type, status) => {
    const request = (form: string) =>
      head('/api/media', [authorization(), `Content-Type: ${type}`, 'Connection: close', form])
    for (const bytes of [
      `${request('Content-Length: 1')}x`,
      `${request('Transfer-Encoding: chunked')}1\r\nx\r\n0\r\n\r\n`,
    ])
      expect((await sendRaw(server.url, bytes)).status).toBe(status)
  })

  test('I1 a request with a key is repeated with and without a Content-Length', async () => {
    const request = (form: string) =>
      head('/api/media', [authorization(), 'Idempotency-Key: both', 'Connection: close', form])
    const whole = `${request('Content-Length: 3')}abc`
    const chunked = `${request('Transfer-Encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`
    const ids = []
    for (const bytes of [whole, chunked, whole]) {
      const { body } = await sendRaw(server.url, bytes)
      ids.push(Value.Parse(Id, JSON.parse(body)).id)
    }
    expect(new Set(ids).size).toBe(1)
    expect((await sendRaw(server.url, whole.replace('abc', 'abd'))).status).toBe(422)
  })

  test('U4 several on one connection are all stored, in their order', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'ordered')
    const headers = { authorization }
    for (const body of ['first', 'second', 'third'])
      expect((await server.request('/api/media', { method: 'POST', body, headers })).status).toBe(201)
    const page = await readPage(await server.request('/api/media', { headers }))
    const contents = await Promise.all(page.data.map(async (url) => (await fetch(url)).text()))
    expect(contents).toEqual(['first', 'second', 'third'])
  })

  test('U10 one whose client disconnects is not stored, and its memory is released', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'cut')
    const headers = { authorization }
    const port = Number(new URL(server.url).port)
    // Three times the memory for small files.
    for (let round = 0; round < 3; round += 1) {
      const sockets = Array.from({ length: 340 }, () =>
        connect(port, '127.0.0.1').on('error', () => undefined),
      )
      for (const socket of sockets)
        socket.write(
          `${head('/api/media', [`Authorization: ${authorization}`, 'Content-Length: 50000'])}${'x'.repeat(49_999)}`,
        )
      await until('all uploads are open', async () => (await activeUploads()) === '340')
      for (const socket of sockets) socket.destroy()
      await until('no upload is open', async () => (await activeUploads()) === '0')
    }
    expect((await readPage(await server.request('/api/media', { headers }))).total).toBe(0)
    const stored = await server.request('/api/media', { method: 'POST', body: 'x', headers })
    expect(stored.status).toBe(201)
  })

  test('S9 are stored in the catalog while many clients have begun uploads and send nothing', async () => {
    const port = Number(new URL(server.url).port)
    const sockets = Array.from({ length: 400 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
    for (const socket of sockets) socket.write(head('/api/media', [authorization(), 'Content-Length: 50000']))
    await until('all uploads are open', async () => (await activeUploads()) === '400')
    for (let count = 0; count < 5; count += 1) await upload(server, `small ${count}`)
    const entries = await readdir(join(server.data, 'blobs'), { recursive: true, withFileTypes: true })
    expect(entries.filter((entry) => entry.isFile()).map(({ name }) => name)).toEqual(['.identity'])
    for (const socket of sockets) socket.destroy()
    await until('no upload is open', async () => (await activeUploads()) === '0')
  })
})
