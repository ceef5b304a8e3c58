import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { s3Settings } from '../harness/ceph.ts'
import { createDatabase } from '../harness/postgres.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'

const size = 9_000
const maxBytes = 200_000
/** As many uploads as fit. */
const fitting = Math.floor(maxBytes / size)
const concurrency = 64

/** A bucket, and what uploads to it by one of several servers. */
interface Target {
  readonly url: (index: number) => string
  readonly authorization: string
}

type Way = (target: Target, index: number) => Promise<Response>

const post = (
  { url, authorization }: Target,
  index: number,
  body: NonNullable<RequestInit['body']>,
  headers: Readonly<Record<string, string>> = {},
) =>
  fetch(`${url(index)}/api/media`, {
    ...{ method: 'POST', body, headers: { authorization, ...headers } },
    ...(body instanceof ReadableStream && { duplex: 'half' }),
  })

function formOf(lengths: readonly number[]): FormData {
  const form = new FormData()
  for (const [index, length] of lengths.entries())
    form.append('file', new Blob([randomBytes(length)]), `${index}.bin`)
  return form
}

const tusAt = ({ url, authorization }: Target, index: number) =>
  tusOf({ url: url(index), token: authorization.slice('Bearer '.length) })

const ways: Readonly<Record<string, Way>> = {
  raw: (target, index) => post(target, index, randomBytes(size)),
  'raw without a length': (target, index) =>
    post(target, index, new Blob([randomBytes(size / 2), randomBytes(size / 2)]).stream()),
  form: (target, index) => post(target, index, formOf([size])),
  'form of several files': (target, index) => post(target, index, formOf([size / 3, size / 3, size / 3])),
  resumable: async (target, index) => {
    const tus = tusAt(target, index)
    const created = await tus.send('POST', '/api/uploads', { 'upload-length': `${size}` })
    if (created.status !== 201) return created
    const upload = new URL(created.headers.get('location') ?? '').pathname
    const chunk = await tus.sendChunk(upload, 0, randomBytes(4_000))
    if (chunk.status !== 204) return chunk
    return await tusAt(target, index + 1).sendChunk(upload, 4_000, randomBytes(size - 4_000))
  },
  'resumable without a length': async (target, index) => {
    const tus = tusAt(target, index)
    const created = await tus.send('POST', '/api/uploads', { 'upload-defer-length': '1' })
    if (created.status !== 201) return created
    const upload = new URL(created.headers.get('location') ?? '').pathname
    return await tus.sendChunk(upload, 0, randomBytes(size), { 'upload-length': `${size}` })
  },
  // Two servers get the request at the same time, and one of them again.
  'repeated with a key': async (target, index) => {
    const body = randomBytes(size)
    const send = (at: number) => post(target, at, body, { 'idempotency-key': `key-${index}` })
    const [one, other] = await Promise.all([send(index), send(index + 1)])
    const last = await send(index)
    const stored = [one, other, last].filter(({ status }) => status === 201)
    const texts = await Promise.all(stored.map((response) => response.clone().text()))
    expect(new Set(texts).size).toBeLessThanOrEqual(1)
    return last
  },
}

const places: Readonly<Record<string, () => Promise<readonly TestServer[]>>> = {
  'SQLite, one service of two processes': async () => [await startServer({ MEDIABUCKET_WORKERS: '2' })],
  'PostgreSQL and S3, two servers': async () => {
    const { url } = await createDatabase()
    const shared = {
      MEDIABUCKET_DATABASE_URL: url,
      MEDIABUCKET_INLINE_SIZE: '5kB',
      MEDIABUCKET_BASE_URL: 'http://media.example',
      ...(await s3Settings()),
    }
    return [await startServer(shared), await startServer(shared)]
  },
}

describe.each(Object.entries(places))('Q1, Q2 %s', (_, start) => {
  test('64 concurrent uploads of each way, and of all ways, exceed the quota by 0 bytes', async () => {
    const servers = await start()
    try {
      const [first] = servers
      if (first === undefined) throw new Error('no server')
      for (const [name, way] of [...Object.entries(ways), ['all', null] as const]) {
        const bucket = randomUUID()
        const created = await first.command('token', 'create', '--bucket', bucket)
        await first.command('bucket', 'set', bucket, '--max-bytes', `${maxBytes}`)
        const target: Target = {
          url: (index) => servers[index % servers.length]?.url ?? '',
          authorization: `Bearer ${created.stdout.trim()}`,
        }
        const state = async () => {
          const response = await fetch(`${target.url(0)}/api/bucket`, {
            headers: { authorization: target.authorization },
          })
          const { bytes, reserved_bytes } = Object(await response.json())
          expect(bytes + reserved_bytes, name).toBeLessThanOrEqual(maxBytes)
          return Number(bytes)
        }
        const all = Object.values(ways)
        const wayOf = (index: number) => way ?? all[index % all.length]
        const uploads = Array.from({ length: concurrency }, (_, index) => wayOf(index)?.(target, index))
        let isRunning = true
        const uploaded = Promise.all(uploads).finally(() => {
          isRunning = false
        })
        while (isRunning) await state()
        for (const response of await uploaded)
          expect([201, 204, 507], `${name}: ${await response?.clone().text()}`).toContain(response?.status)

        // Some were refused because of reservations of others that were refused later.
        for (let index = 0; index < fitting && (await state()) < fitting * size; index += 1)
          await post(target, index, randomBytes(size))
        expect(await state(), name).toBe(fitting * size)
        expect((await post(target, 0, randomBytes(size))).status, name).toBe(507)
      }
    } finally {
      for (const server of servers) await server[Symbol.asyncDispose]()
    }
  })
})
