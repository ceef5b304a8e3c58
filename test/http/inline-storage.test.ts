import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { filePart, formBytes, formType } from '../harness/form.ts'
import { type SharedServer, startServer, type TestServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { fsck } from '../harness/upkeep.ts'
import { blobPath } from '../harness/upload.ts'
import { readItem, readStoredItems } from '../harness/wire.ts'

/** The default of MEDIABUCKET_INLINE_SIZE. Files up to this size are stored in the catalog. */
const limit = 65_536
const sizes = [0, 1, limit - 1, limit, limit + 1]

const raw = async (
  server: SharedServer,
  body: Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
) => readItem(await server.request('/api/media', { method: 'POST', body, headers }))

const get = (server: SharedServer, id: string, headers: Record<string, string> = {}) =>
  server.request(`/media/${id}`, { headers })

const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer())

async function expectServed(server: SharedServer, id: string, bytes: Buffer): Promise<void> {
  const response = await get(server, id)
  expect(response.status).toBe(200)
  expect((await bytesOf(response)).equals(bytes)).toBe(true)
}

const random = (size: number): Buffer<ArrayBuffer> => Buffer.from(randomBytes(size))

describe('files around the limit of inline storage', () => {
  test.each(sizes)('U1, B1 a raw upload of %i bytes is served unchanged', async (size) => {
    const server = await sharedServer()
    const bytes = random(size)
    const item = await raw(server, bytes)
    expect(item).toMatchObject({ size, sha256: createHash('sha256').update(bytes).digest('hex') })
    expect(existsSync(blobPath(server, item.id))).toBe(size > limit)
    await expectServed(server, item.id, bytes)
  })

  test('U2 one form stores small and large files in the order sent', async () => {
    const server = await sharedServer()
    const files = [...sizes, 20, limit + 5_000, 30].map(random)
    const body = formBytes(...files.map((bytes, index) => filePart(`${index}.bin`, bytes)))
    const response = await server.request('/api/media', {
      method: 'POST',
      body,
      headers: { 'content-type': formType },
    })
    const stored = await readStoredItems(response)
    expect(stored.map(({ filename }) => filename)).toEqual(files.map((_, index) => `${index}.bin`))
    for (const [index, bytes] of files.entries()) await expectServed(server, stored[index]?.id ?? '', bytes)
  })

  test('U2 one form stores hundreds of small files', async () => {
    const server = await sharedServer()
    const files = Array.from({ length: 300 }, (_, index) => random(index * 20))
    const body = formBytes(...files.map((bytes, index) => filePart(`${index}`, bytes)))
    const stored = await readStoredItems(
      await server.request('/api/media', { method: 'POST', body, headers: { 'content-type': formType } }),
    )
    expect(stored).toHaveLength(300)
    for (const index of [0, 1, 150, 299])
      await expectServed(server, stored[index]?.id ?? '', files[index] ?? Buffer.alloc(0))
  })

  test.each(sizes.slice(1))(
    'R5 a resumable upload of %i bytes in two chunks is served unchanged',
    async (size) => {
      const server = await sharedServer()
      const tus = tusOf(server)
      const bytes = random(size)
      const url = await tus.createWithLength(size)
      const half = Math.floor(size / 2)
      if (half > 0) await tus.sendChunk(url, 0, bytes.subarray(0, half))
      const last = await tus.sendChunk(url, half, bytes.subarray(half))
      expect(last.headers.get('upload-offset')).toBe(`${size}`)
      const id = last.headers.get('content-location')?.split('/').at(-1) ?? ''
      expect(existsSync(blobPath(server, id))).toBe(size > limit)
      await expectServed(server, id, bytes)
    },
  )

  test('B4 ranges of a small file, and HEAD', async () => {
    const server = await sharedServer()
    const bytes = random(10_000)
    const { id } = await raw(server, bytes)
    for (const [range, start, end] of [
      ['bytes=0-0', 0, 1],
      ['bytes=500-1499', 500, 1_500],
      ['bytes=9990-', 9_990, 10_000],
      ['bytes=-7', 9_993, 10_000],
    ] as const) {
      const response = await get(server, id, { range })
      expect([response.status, response.headers.get('content-range')]).toEqual([
        206,
        `bytes ${start}-${end - 1}/10000`,
      ])
      expect((await bytesOf(response)).equals(bytes.subarray(start, end))).toBe(true)
    }
    expect((await get(server, id, { range: 'bytes=10000-' })).status).toBe(416)
    const head = await server.request(`/media/${id}`, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, '10000'])
  })

  test('M2 a deleted small file is not served any more', async () => {
    const server = await sharedServer()
    const { id } = await raw(server, random(500))
    expect((await server.request(`/api/media/${id}`, { method: 'DELETE' })).status).toBe(204)
    expect((await get(server, id)).status).toBe(404)
    expect((await server.request(`/api/media/${id}`, { method: 'DELETE' })).status).toBe(404)
  })
})

test('a change of MEDIABUCKET_INLINE_SIZE affects later uploads only', async () => {
  const bytes = random(5_000)
  const stored: string[] = []
  await using first = await startServer({ MEDIABUCKET_INLINE_SIZE: '64KiB' })
  const { data, token } = first
  let server: TestServer = first
  onTestFinished(() => server.kill())
  const authorization = `Bearer ${token}`
  for (const [size, isFile] of [
    ['64KiB', false],
    ['0', true],
    ['4999', true],
    ['5000', false],
  ] as const) {
    await server.stop()
    server = await startServer({ MEDIABUCKET_INLINE_SIZE: size }, data)
    const { id } = await raw(server, bytes, { authorization })
    expect(existsSync(blobPath(server, id))).toBe(isFile)
    stored.push(id)
    for (const one of stored) await expectServed(server, one, bytes)
  }
  for (const id of stored) {
    const init = { method: 'DELETE', headers: { authorization } }
    expect((await server.request(`/api/media/${id}`, init)).status).toBe(204)
  }
  await until('the files are removed', () => stored.every((id) => !existsSync(blobPath(server, id))))
  await server.stop()
  expect((await fsck(data, '--verify-bytes')).report).toMatchObject({ clean: true, items: 0 })
})
