import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { expectProblem } from '../harness/problem.ts'
import { parseResponse } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { chunkType, itemOf, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { readItem } from '../harness/wire.ts'

let server: TestServer
let tus: ReturnType<typeof tusOf>
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '1MB' })
  tus = tusOf(server)
})
afterAll(() => server[Symbol.asyncDispose]())

describe('R9 terminating an upload', () => {
  test('removes the received bytes', async () => {
    const before = await readdir(join(server.data, 'uploads'))
    const url = await tus.createWithLength(10)
    await tus.sendChunk(url, 0, 'abc')
    const response = await tus.terminate(url)
    expect([response.status, response.headers.get('tus-resumable')]).toEqual([204, '1.0.0'])
    for (const gone of [await tus.head(url), await tus.sendChunk(url, 3, 'd'), await tus.terminate(url)])
      expect(gone.status).toBe(404)
    expect(await readdir(join(server.data, 'uploads'))).toEqual(before)
  })

  test('that is complete requires media:delete; without it the item remains', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'default', '--scope', 'media:write')
    const uploader = tusOf(server, authorization)
    const url = await uploader.createWithLength(5)
    const { id, url: bytes } = await itemOf(server, await uploader.sendChunk(url, 0, 'whole'))
    await expectProblem(await uploader.terminate(url), 403, 'scope-missing')
    expect(await (await fetch(bytes)).text()).toBe('whole')
    expect((await tus.terminate(url)).status).toBe(204)
    expect((await server.request(`/api/media/${id}`)).status).toBe(404)
    expect((await tus.head(url)).status).toBe(404)
  })

  test('that is not complete requires only media:write', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'default', '--scope', 'media:write')
    const uploader = tusOf(server, authorization)
    expect((await uploader.terminate(await uploader.createWithLength(5))).status).toBe(204)
  })
})

describe('R13 X-HTTP-Method-Override', () => {
  test('applies to POST and requires the scope of the named method', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'default', '--scope', 'media:write')
    const url = await tus.createWithLength(5)
    const override = (method: string, headers = {}, body = '') =>
      tus.send('POST', url, { 'x-http-method-override': method, ...headers }, body)
    const chunk = { 'upload-offset': '0', 'content-type': chunkType }
    const last = await override('PATCH', chunk, 'whole')
    expect([last.status, last.headers.get('upload-offset')]).toEqual([204, '5'])
    expect((await override('HEAD')).headers.get('upload-offset')).toBe('5')
    await expectProblem(await override('DELETE', { authorization }), 403, 'scope-missing')
    for (const method of ['PUT', 'patch', 'GET', '']) {
      await expectProblem(await override(method), 405, 'method-not-allowed')
    }
    expect((await override('DELETE')).status).toBe(204)
  })

  test('is ignored on other routes and methods', async () => {
    const { id } = await readItem(await server.request('/api/media', { method: 'POST', body: 'x' }))
    const headers = { 'x-http-method-override': 'DELETE' }
    const response = await server.request(`/api/media/${id}`, { method: 'POST', headers })
    await expectProblem(response, 405, 'method-not-allowed')
    expect((await server.request(`/api/media/${id}`)).status).toBe(200)
  })
})

// The first length is that of a file in the catalog.
test.each([1_000, 70_000])(
  'R4, R6 a HEAD request ends a stalled PATCH request of an upload of %i bytes',
  async (length) => {
    const url = await tus.createWithLength(length)
    using stuck = await openConnection(server.url)
    const head = [
      `PATCH ${url} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${server.token}`,
      'Tus-Resumable: 1.0.0',
      'Upload-Offset: 0',
      `Content-Type: ${chunkType}`,
      `Content-Length: ${length}`,
    ].join('\r\n')
    stuck.send(`${head}\r\n\r\n${'x'.repeat(600)}`)
    // Until the PATCH request has arrived, the offset is 0.
    await until('the received bytes are synced', async () => (await tus.offset(url)) === 600)
    await until('the stalled request receives a problem', () =>
      stuck.received().includes('upload-offset-conflict'),
    )
    expect(parseResponse(stuck.received()).status).toBe(409)
    const last = await tus.sendChunk(url, 600, 'y'.repeat(length - 600))
    expect(await (await fetch((await itemOf(server, last)).url)).text()).toBe(
      'x'.repeat(600) + 'y'.repeat(length - 600),
    )
  },
)
