import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fieldPart, filePart, formBytes, formType, sendForm } from '../harness/form.ts'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import { countStored } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { readItem, readStoredItems } from '../harness/wire.ts'

const limit = 100_000
let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: `${limit}` })
})
afterAll(() => server[Symbol.asyncDispose]())

/** The ways to send a file of a given size. */
const ways: [string, (bytes: Buffer<ArrayBuffer>) => Promise<Response>][] = [
  ['by form', (bytes) => sendForm(server, formBytes(filePart('a', bytes)))],
  [
    'by a chunked form',
    (bytes) =>
      server.request('/api/media', {
        method: 'POST',
        headers: { 'content-type': formType },
        body: new Blob([formBytes(filePart('a', bytes))]).stream(),
        duplex: 'half',
      }),
  ],
  ['raw', (body) => server.request('/api/media', { method: 'POST', body })],
  [
    'raw and chunked',
    (bytes) =>
      server.request('/api/media', { method: 'POST', body: new Blob([bytes]).stream(), duplex: 'half' }),
  ],
]

describe.each(ways)('%s', (_, send) => {
  test('U6 a file exactly at the limit is stored', async () => {
    const response = await send(Buffer.alloc(limit, 'x'))
    expect(response.status).toBe(201)
    expect((await readItem(response)).size).toBe(limit)
  })

  test.each([1, 4_000_000])(
    'U6 a file over the limit by %i bytes is refused with 413, and nothing of it is stored',
    async (over) => {
      const before = await countStored(server)
      const problem = await expectProblem(await send(Buffer.alloc(limit + over, 'x')), 413, 'file-too-large')
      expect(problem.detail).toContain(`${limit}`)
      expect(await countStored(server)).toEqual(before)
    },
  )
})

test('U6 a file with a declared length over the limit is refused before its body arrives', async () => {
  const head = `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nConnection: close\r\n`
  const raw = await sendRaw(server.url, `${head}Content-Length: ${limit + 1}\r\n\r\n`)
  await expectProblem(responseOf(raw), 413, 'file-too-large')
  const form = `Content-Type: ${formType}\r\nContent-Length: 99999999999999\r\n\r\n`
  await expectProblem(responseOf(await sendRaw(server.url, head + form)), 413, 'file-too-large')
})

test('U6 the limit applies to each file, not to the form', async () => {
  const parts = Array.from({ length: 5 }, () => filePart('a', Buffer.alloc(limit)))
  expect(await readStoredItems(await sendForm(server, formBytes(...parts)))).toHaveLength(5)
})

test.each([0, 10, 20])(
  'U2, U6 when file %i of 21 is too large, nothing of the request is stored',
  async (large) => {
    const before = await countStored(server)
    const parts = Array.from({ length: 21 }, (_, i) =>
      filePart(`${i}`, Buffer.alloc(i === large ? limit + 1 : 5)),
    )
    await expectProblem(await sendForm(server, formBytes(...parts)), 413, 'file-too-large')
    expect(await countStored(server)).toEqual(before)
  },
)

test('U6 a form of a thousand parts is stored, and one of a thousand and one is refused with 413', async () => {
  const before = await countStored(server)
  const fields = Array.from({ length: 999 }, (_, i) => fieldPart(`${i}`, 'x'))
  expect((await sendForm(server, formBytes(...fields, filePart('a')))).status).toBe(201)
  const one = { ...before, total: before.total + 1, blobs: before.blobs + 1 }
  const tooMany = [
    [filePart('a'), ...fields, fieldPart('b', 'x')],
    [...fields, filePart('a'), filePart('b')],
    Array.from({ length: 1001 }, () => filePart('a')),
  ]
  for (const parts of tooMany) {
    await expectProblem(await sendForm(server, formBytes(...parts)), 413, 'parts-too-many')
    expect(await countStored(server)).toEqual(one)
  }
})

test('U1 a field can have at most 1 MB', async () => {
  const form = new FormData()
  form.append('note', 'x'.repeat(1_000_001))
  form.append('file', new File(['kept?'], 'a.txt'))
  await expectProblem(
    await server.request('/api/media', { method: 'POST', body: form }),
    413,
    'body-too-large',
  )
  form.set('note', 'x'.repeat(1_000_000))
  expect((await server.request('/api/media', { method: 'POST', body: form })).status).toBe(201)
})
