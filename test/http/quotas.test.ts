import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { filePart, formBytes, formType, sendForm } from '../harness/form.ts'
import { expectProblem } from '../harness/problem.ts'
import { countStored } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { upload } from '../harness/upload.ts'

const CountOrNull = Type.Union([Type.Integer(), Type.Null()])
const Bucket = Type.Object(
  {
    name: Type.String(),
    items: Type.Integer(),
    bytes: Type.Integer(),
    reserved_items: Type.Integer(),
    reserved_bytes: Type.Integer(),
    max_items: CountOrNull,
    max_bytes: CountOrNull,
    trash_days: Type.Integer(),
    trash_items: Type.Integer(),
    trash_bytes: Type.Integer(),
    private: Type.Boolean(),
    signed_pages: Type.Boolean(),
    public_keys: Type.Boolean(),
    public_list: Type.Boolean(),
    url_uploads: Type.Boolean(),
    variants: Type.Union([Type.Array(Type.String()), Type.Null()]),
    public_variants: Type.Union([Type.Array(Type.String()), Type.Null()]),
    crop: Type.Union([Type.String(), Type.Null()]),
    remove_metadata: Type.Boolean(),
    keep_taken_at: Type.Boolean(),
    max_file_size: CountOrNull,
    types: Type.Null(),
    item_days: CountOrNull,
    usage_today: Type.Optional(Type.Object({ items: Type.Integer(), bytes: Type.Integer() })),
  },
  { additionalProperties: false },
)

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

let buckets = 0
/** A new bucket with these limits. */
async function bucketWith(...limits: string[]) {
  buckets += 1
  const name = `bucket-${buckets}`
  const { authorization } = await makeToken(server, '--bucket', name)
  if (limits.length > 0) await runHere(server.data, 'bucket set', name, ...limits)
  const headers = { authorization }
  return {
    name,
    authorization,
    state: async () => Value.Parse(Bucket, await (await server.request('/api/bucket', { headers })).json()),
    raw: (body: string | Uint8Array<ArrayBuffer>) =>
      server.request('/api/media', { method: 'POST', body, headers }),
    form: (...files: Uint8Array[]) =>
      server.request('/api/media', {
        method: 'POST',
        body: formBytes(...files.map((bytes, i) => filePart(`${i}.bin`, bytes, 'application/octet-stream'))),
        headers: { ...headers, 'content-type': formType },
      }),
    /** A body without a declared length. */
    chunked: (length: number) =>
      server.request('/api/media', {
        method: 'POST',
        body: new Blob([randomBytes(length)]).stream(),
        headers,
        duplex: 'half',
      } as RequestInit),
  }
}

describe('Q1 an upload that does not fit', () => {
  test('is refused with the limit of items, raw and as a form', async () => {
    const bucket = await bucketWith('--max-items', '2')
    expect((await bucket.raw('one')).status).toBe(201)
    const before = await countStored(server)
    const refused = await bucket.form(randomBytes(1), randomBytes(1))
    const problem = await expectProblem(refused, 507, 'quota-exceeded')
    expect(problem.errors).toEqual([
      {
        parameter: 'max_items',
        detail: 'The bucket may hold 2 items.',
        ...{ maximum: 2, unit: 'items' },
      },
    ])
    expect((await bucket.form(randomBytes(1))).status).toBe(201)
    await expectProblem(await bucket.raw(''), 507, 'quota-exceeded')
    expect(await bucket.state()).toMatchObject({ items: 2, max_items: 2, max_bytes: null })
    expect(await countStored(server)).toEqual({ ...before, blobs: before.blobs + 1 })
  })

  test.each(['raw', 'form', 'chunked'] as const)('is refused with the limit of bytes: %s', async (way) => {
    const bucket = await bucketWith('--max-bytes', '100kB')
    const send = (length: number) =>
      way === 'chunked' ? bucket.chunked(length) : bucket[way](randomBytes(length))
    const before = await countStored(server)
    const problem = await expectProblem(await send(100_001), 507, 'quota-exceeded')
    expect(problem.errors).toEqual([
      {
        parameter: 'max_bytes',
        detail: 'The bucket may hold 100000 bytes.',
        ...{ maximum: 100_000, unit: 'bytes' },
      },
    ])
    expect(await countStored(server)).toEqual(before)
    expect((await send(100_000)).status).toBe(201)
    expect((await bucket.raw('')).status).toBe(201)
    await expectProblem(await send(1), 507, 'quota-exceeded')
    expect(await bucket.state()).toMatchObject({ items: 2, bytes: 100_000 })
  })

  test('fits once something is deleted', async () => {
    const bucket = await bucketWith('--max-items', '1')
    const { id } = await upload(server, 'x', { authorization: bucket.authorization })
    const problem = await expectProblem(await bucket.raw('y'), 507, 'quota-exceeded')
    expect(problem.errors).toEqual([
      {
        parameter: 'max_items',
        detail: 'The bucket may hold 1 item.',
        ...{ maximum: 1, unit: 'items' },
      },
    ])
    const { authorization } = bucket
    await server.request(`/api/media/${id}`, { method: 'DELETE', headers: { authorization } })
    expect((await bucket.raw('y')).status).toBe(201)
  })
})

describe('Q1 uploads in parallel', () => {
  test('as many as fit are stored, and no more', async () => {
    const bucket = await bucketWith('--max-items', '10')
    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, i) => (i % 2 ? bucket.raw(`${i}`) : bucket.form(randomBytes(i)))),
    )
    const stored = responses.filter(({ status }) => status === 201)
    const refused = responses.filter(({ status }) => status === 507)
    expect([stored.length, refused.length]).toEqual([10, 30])
    expect(await bucket.state()).toMatchObject({ items: 10, reserved_items: 0 })
  })

  test('bytes never exceed the limit, with and without declared lengths', async () => {
    const bucket = await bucketWith('--max-bytes', '1MB')
    const before = await countStored(server)
    const responses = await Promise.all(
      Array.from({ length: 24 }, (_, i) => {
        const length = 150_000
        if (i % 3 === 0) return bucket.chunked(length)
        return i % 3 === 1 ? bucket.raw(randomBytes(length)) : bucket.form(randomBytes(length))
      }),
    )
    const stored = responses.filter(({ status }) => status === 201).length
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([201, 507]))
    expect(stored).toBeLessThanOrEqual(6)
    expect(await bucket.state()).toMatchObject({ items: stored, bytes: stored * 150_000 })
    expect(await countStored(server)).toEqual({ ...before, blobs: before.blobs + stored })
    // The refused uploads have released their reservations.
    for (let more = stored; more < 6; more += 1)
      expect((await bucket.raw(randomBytes(150_000))).status).toBe(201)
  })
})

test('Q2 a declared length that cannot fit is refused before the body is sent', async () => {
  const bucket = await bucketWith('--max-bytes', '1kB')
  const sent = request(`${server.url}/api/media`, {
    method: 'POST',
    headers: { authorization: bucket.authorization, 'content-length': 1001, expect: '100-continue' },
  })
  const events: string[] = []
  sent.on('continue', () => events.push('continue'))
  const status = await new Promise((resolve, reject) => {
    sent.on('response', ({ statusCode }) => resolve(statusCode))
    sent.on('error', reject)
    sent.flushHeaders()
  })
  sent.destroy()
  expect([events, status]).toEqual([[], 507])
})

describe('Q3 the bucket', () => {
  test('returns its contents and its limits', async () => {
    const bucket = await bucketWith()
    const trash = {
      ...{ trash_days: 0, trash_items: 0, trash_bytes: 0 },
      ...{
        private: false,
        signed_pages: false,
        public_keys: false,
        public_list: false,
        url_uploads: true,
        ...{ variants: null, public_variants: null, crop: null },
        remove_metadata: false,
        keep_taken_at: true,
        item_days: null,
      },
    }
    const limits = { max_items: null, max_bytes: null, max_file_size: null, types: null, ...trash }
    const reserved = { reserved_items: 0, reserved_bytes: 0 }
    expect(await bucket.state()).toEqual({
      ...{ name: bucket.name, items: 0, bytes: 0, ...reserved, ...limits },
      usage_today: expect.objectContaining({ items: 0, bytes: 0 }),
    })
    await bucket.form(randomBytes(10), randomBytes(5))
    expect(await bucket.state()).toMatchObject({ items: 2, bytes: 15 })
  })

  test('needs media:read', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'default', '--scope', 'media:write')
    const response = await server.request('/api/bucket', { headers: { authorization } })
    await expectProblem(response, 403, 'scope-missing')
  })
})

describe('Q4 limits are set while the server runs', () => {
  test('the next upload is checked against them, and existing items stay', async () => {
    const bucket = await bucketWith()
    for (const body of ['one', 'two']) await bucket.raw(body)
    const set = (...args: string[]) => runHere(server.data, 'bucket set', bucket.name, ...args)
    expect((await set('--max-items', '1', '--max-bytes', '2GiB')).reported).toMatch(
      /^Settings of the bucket "\S+": 1 item, 2\.1 GB\.\nThe bucket already holds more: 2 items, 6 B\./,
    )
    await expectProblem(await bucket.raw('three'), 507, 'quota-exceeded')
    expect(await bucket.state()).toMatchObject({ items: 2, max_items: 1, max_bytes: 2 * 2 ** 30 })
    const { reported } = await set('--max-items', 'none')
    expect(reported).toBe(`Settings of the bucket "${bucket.name}": no limit on items.`)
    const { reported: others } = await set('--trash-days', 'none', '--signed-pages', 'on')
    expect(others).toMatch(/: no trash, signed URLs in lists\.\nThe bucket is public, so/)
    expect((await bucket.raw('three')).status).toBe(201)
    expect(await bucket.state()).toMatchObject({ items: 3, max_items: null, max_bytes: 2 * 2 ** 30 })
  })

  test('bucket list shows them', async () => {
    const { name } = await bucketWith('--max-bytes', '5MB')
    const { stdout } = await server.command('bucket', 'list', '--json')
    const shown = stdout
      .trim()
      .split('\n')
      .map((line) => Value.Parse(Bucket, JSON.parse(line)))
    expect(shown.find((one) => one.name === name)).toMatchObject({ max_items: null, max_bytes: 5_000_000 })
    expect((await server.command('bucket', 'list')).stdout).toMatch(
      new RegExp(`^${name} +0 +none +0 B +5\\.0 MB +public$`, 'm'),
    )
  })

  test.each([
    [['set'], 2, /takes one NAME/],
    [['set', 'default'], 2, /needs --max-items/],
    [['set', 'default', '--max-items', '-1'], 2, /max-items/],
    [['set', 'default', '--max-items=1e3'], 2, /--max-items takes .*, not "1e3"/],
    [['set', 'default', '--max-bytes=lots'], 2, /--max-bytes takes .*, not "lots"/],
    [['set', 'nowhere', '--max-items=1'], 4, /no bucket "nowhere"/],
  ])('bucket %j is refused with its own message', async (args, code, message) => {
    await expect(server.command('bucket', ...args)).rejects.toMatchObject({
      code,
      stderr: expect.stringMatching(message),
    })
  })
})

test('Q1 a form is refused completely where its last file does not fit', async () => {
  const before = await countStored(server)
  await runHere(server.data, 'bucket set', 'default', '--max-items', `${before.total + 1}`)
  const form = formBytes(filePart('a.txt', 'a'), filePart('b.txt', 'b'))
  await expectProblem(await sendForm(server, form), 507, 'quota-exceeded')
  expect(await countStored(server)).toEqual(before)
})

test('O3, Q1 a full bucket is not logged as an error of the service', async () => {
  const bucket = await bucketWith('--max-items', '0')
  await expectProblem(await bucket.raw('text'), 507, 'quota-exceeded')
  expect(server.log().filter(({ level }) => Number(level) >= 40)).toEqual([])
})
