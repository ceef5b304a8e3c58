import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { fieldPart, filePart, formBytes, formType } from '../harness/form.ts'
import { freshMetrics } from '../harness/fresh-metrics.ts'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import { countStored } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { readItem, readStoredItems } from '../harness/wire.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const put = (key: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  server.request('/api/media', {
    method: 'POST',
    body,
    headers: { 'idempotency-key': key, 'content-type': 'text/plain', ...headers },
  })

const newKey = () => `"${randomUUID()}"`

/** The parts of a response that do not depend on the request. */
async function said(response: Response) {
  const headers = [...response.headers].filter(
    ([name]) => !['date', 'keep-alive', 'connection'].includes(name),
  )
  return [response.status, headers, await response.text()]
}

describe('I2 the same key and the same content', () => {
  test('twenty concurrent requests store one item and get twenty equal responses', async () => {
    const [before, key, body] = [await countStored(server), newKey(), randomBytes(300_000)]
    const responses = await Promise.all(Array.from({ length: 20 }, async () => said(await put(key, body))))
    expect(responses[0]?.[0]).toBe(201)
    for (const response of responses) expect(response).toEqual(responses[0])
    expect(await countStored(server)).toEqual({ ...before, total: before.total + 1, blobs: before.blobs + 1 })
  })

  test('as a form of several files, with other boundaries and fields', async () => {
    const [before, key] = [await countStored(server), newKey()]
    const files = [filePart('a.txt', 'one'), filePart('b.txt', 'two')]
    const first = await put(key, formBytes(...files), { 'content-type': formType })
    const again = await put(key, formBytes(fieldPart('title', 'Holiday'), ...files), {
      'content-type': formType,
    })
    expect(await said(again)).toEqual(await said(first.clone()))
    expect(await readStoredItems(first)).toHaveLength(2)
    expect(await countStored(server)).toEqual({ ...before, total: before.total + 2, blobs: before.blobs + 2 })
  })

  test('after the item has been deleted', async () => {
    const [before, key] = [await countStored(server), newKey()]
    const first = await put(key, 'short-lived')
    const { id } = await readItem(first.clone())
    expect((await server.request(`/api/media/${id}`, { method: 'DELETE' })).status).toBe(204)
    // The bytes of a deleted item are removed after the response.
    await until('its bytes are gone', async () => (await countStored(server)).blobs === before.blobs)
    expect(await said(await put(key, 'short-lived'))).toEqual(await said(first))
    expect(await countStored(server)).toEqual(before)
  })

  test('in a bucket that the first request filled', async () => {
    const { token: full } = await makeToken(server, '--bucket', 'full')
    await runHere(server.data, 'bucket set', 'full', '--max-items', '1')
    const authorization = `Bearer ${full}`
    const key = newKey()
    const together = await Promise.all(
      Array.from({ length: 20 }, async () => said(await put(key, 'the only one', { authorization }))),
    )
    expect(together[0]?.[0]).toBe(201)
    for (const response of together) expect(response).toEqual(together[0])
    await expectProblem(await put(key, 'another', { authorization }), 422, 'idempotency-key-reused')
    await expectProblem(await put(newKey(), 'another', { authorization }), 507, 'quota-exceeded')
  })

  test('after the client disconnected behind the last byte', async () => {
    const [before, key, body] = [await countStored(server), newKey(), randomBytes(500_000)]
    const head = [
      'POST /api/media HTTP/1.1',
      'Host: x',
      `Authorization: Bearer ${server.token}`,
      `Idempotency-Key: ${key}`,
      'Content-Type: text/plain',
      `Content-Length: ${body.length}`,
    ].join('\r\n')
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    await new Promise<unknown>((left) =>
      socket.write(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body]), left),
    )
    socket.destroy()
    const { sha256 } = await readItem(await put(key, body))
    expect(sha256).toBe(createHash('sha256').update(body).digest('hex'))
    // The request that comes second at the commit discards its file afterwards.
    await until('one item is stored', async () => {
      const { total, blobs, temporary } = await countStored(server)
      return total === before.total + 1 && blobs === before.blobs + 1 && temporary === before.temporary
    })
  })

  test('after a restart', async () => {
    const key = newKey()
    await using first = await startServer()
    const send = (to: TestServer) =>
      fetch(`${to.url}/api/media`, {
        method: 'POST',
        body: 'kept',
        headers: { authorization: `Bearer ${first.token}`, 'idempotency-key': key },
      })
    const { id } = await readItem(await send(first))
    await first.kill()
    await using second = await startServer({}, first.data)
    expect((await readItem(await send(second))).id).toBe(id)
  })

  test('a failed request leaves its key unused', async () => {
    const key = newKey()
    const bad = await put(key, 'no form', { 'content-type': formType })
    await expectProblem(bad, 400, 'form-malformed')
    expect((await put(key, 'other content')).status).toBe(201)
  })

  test('repeated requests are not counted as stored', async () => {
    const key = newKey()
    await put(key, 'counted')
    const stored = async () =>
      /^mediabucket_uploaded_items_total \d+$/m.exec(await freshMetrics(server.url))?.[0]
    const before = await stored()
    await put(key, 'counted')
    expect(await stored()).toBe(before)
  })
})

describe('I3 the same key with other content gets a 422 problem', () => {
  test.each([
    ['bytes', 'other', {}],
    ['name', 'content', { 'content-disposition': 'attachment; filename=b.txt' }],
    ['type', 'content', { 'content-type': 'text/html' }],
  ])('another %s', async (_, body, headers) => {
    const key = newKey()
    expect((await put(key, 'content')).status).toBe(201)
    const before = await countStored(server)
    await expectProblem(await put(key, body, headers), 422, 'idempotency-key-reused')
    expect(await countStored(server)).toEqual(before)
  })

  test('of twenty concurrent requests with different content one is stored', async () => {
    const [before, key] = [await countStored(server), newKey()]
    const responses = await Promise.all(Array.from({ length: 20 }, (_, i) => put(key, `content ${i}`)))
    expect(responses.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(422)])
    expect(await countStored(server)).toEqual({ ...before, total: before.total + 1, blobs: before.blobs + 1 })
  })
})

test('I4 a key belongs to one token', async () => {
  const key = newKey()
  const { authorization } = await makeToken(server, '--bucket', 'default')
  const mine = await readItem(await put(key, 'shared'))
  const theirs = await readItem(await put(key, 'shared', { authorization }))
  expect(theirs.id).not.toBe(mine.id)
})

describe('I1 the key', () => {
  test('is the same with and without quotes', async () => {
    const uuid = randomUUID()
    const { id } = await readItem(await put(uuid, 'x'))
    expect((await readItem(await put(`"${uuid}"`, 'x'))).id).toBe(id)
  })

  test.each([
    ['{5f7c}', '"{5f7c}"'],
    ['(5f7c)', '"(5f7c)"'],
    ['<5f7c>', '"<5f7c>"'],
    ['[5f7c]?', '"[5f7c]?"'],
    ['5f\\7c', '"5f\\\\7c"'],
    ['k'.repeat(255), `"${'k'.repeat(255)}"`],
  ])('may be any word: %s is %s', async (word, quoted) => {
    const { id } = await readItem(await put(word, 'x'))
    expect((await readItem(await put(quoted, 'x'))).id).toBe(id)
  })

  test('in quotes may have every character of a string of RFC 8941', async () => {
    const printable = Array.from({ length: 95 }, (_, index) => String.fromCharCode(0x20 + index)).join('')
    const key = `"${printable.replaceAll(/["\\]/g, '\\$&')}"`
    const { id } = await readItem(await put(key, 'x'))
    expect((await readItem(await put(key, 'x'))).id).toBe(id)
  })

  test.each([
    ...['', '""', '"open', 'open"', 'o"pen', 'two words', 'a, b', 'a,b', 'a;b', '"a"; b', '"a" "b"'],
    ...['"é"', 'é', '"a\\n"', '"\\"', 'k'.repeat(256), `"${'k'.repeat(256)}"`],
  ])('malformed gets a 400 problem: %s', async (key) => {
    const before = await countStored(server)
    const request = [
      'POST /api/media HTTP/1.1',
      'Host: x',
      'Connection: close',
      `Authorization: Bearer ${server.token}`,
      `Idempotency-Key: ${key}`,
      'Content-Length: 1',
    ].join('\r\n')
    const response = responseOf(await sendRaw(server.url, `${request}\r\n\r\nx`))
    await expectProblem(response, 400, 'idempotency-key-malformed')
    expect(await countStored(server)).toEqual(before)
  })

  test('sent twice gets a 400 problem', async () => {
    const headers = new Headers({ 'idempotency-key': '"a"' })
    headers.append('idempotency-key', '"a"')
    const response = await server.request('/api/media', { method: 'POST', body: 'x', headers })
    await expectProblem(response, 400, 'idempotency-key-malformed')
  })
})
