import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seedBucket } from '../../bench/seed.ts'
import { openSqliteCatalog } from '../../packages/server/src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { databaseSettings, prepareDatabase } from '../harness/database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { seed } from '../harness/seed.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { readItem, readPage } from '../harness/wire.ts'

const run = promisify(execFile)
const script = join(import.meta.dirname, '../../bench/seed.ts')

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const mediaObject = Type.Object({
  id: Type.String(),
  sha256: Type.String(),
  thumbhash: Type.String(),
  ...{ width: Type.Integer(), height: Type.Integer(), size: Type.Integer() },
})

const list = async (token: string, page = 1) =>
  await readPage(
    await server.request(`/api/media?page=${page}`, { headers: { authorization: `Bearer ${token}` } }),
  )

test('L4 seed fills a bucket with small files while the server is running', async () => {
  const { bucket, token, total } = await seed(server, '--items', '2500')
  expect([bucket, total]).toEqual(['seeded', 2_500])
  const page = await list(token, 250)
  expect(page).toMatchObject({ total, last_page: 250, to: 2_500 })
  const headers = { authorization: `Bearer ${token}` }
  const files = new Set<string>()
  for (const url of page.data) {
    const id = new URL(url).pathname.split('/').at(-1)?.split('.')[0]
    const item = await readItem(await server.request(`/api/media/${id}`, { headers }))
    const bytes = Buffer.from(await (await fetch(url)).arrayBuffer())
    expect([bytes.length, createHash('sha256').update(bytes).digest('hex')]).toEqual([item.size, item.sha256])
    files.add(item.sha256)
  }
  expect(files.size).toBe(10)
})

test('L4, L10 seed --delete-every deletes every K-th item', async () => {
  const { token, total } = await seed(server, '--items', '1000', '--delete-every', '3', '--bucket', 'holes')
  expect(total).toBe(667)
  const page = await list(token, 67)
  expect(page).toMatchObject({ total, last_page: 67, from: 661, to: 667 })
  expect(new Set(page.data).size).toBe(7)
  expect((await server.command('fsck')).stdout).toContain('No faults were found.')
})

test('B1, V8, V13 seed --pictures adds different pictures with bytes, dimensions and a ThumbHash', async () => {
  const { token, total } = await seed(server, '--items', '20', '--pictures', '--bucket', 'pictures')
  expect(total).toBe(20)
  const authorization = `Bearer ${token}`
  const response = await server.request('/api/items', { headers: { authorization } })
  const { data } = Value.Parse(Type.Object({ data: Type.Array(Type.Unknown()) }), await response.json())
  const files = new Set<string>()
  for (const item of data.map((item) => Value.Parse(mediaObject, item))) {
    const bytes = Buffer.from(await (await server.request(`/media/${item.id}`)).arrayBuffer())
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(item.sha256)
    const { width, height } = await sharp(bytes).metadata()
    expect([width, height, bytes.length]).toEqual([item.width, item.height, item.size])
    expect(Buffer.from(item.thumbhash, 'base64').length).toBeGreaterThan(5)
    files.add(item.sha256)
  }
  expect(files.size).toBe(20)
})

test('L4 seed adds to existing items', async () => {
  await seed(server, '--items', '5', '--bucket', 'twice')
  const { token, total } = await seed(server, '--items', '7', '--bucket', 'twice')
  expect([total, (await list(token)).total]).toEqual([12, 12])
})

test('a seed leaves no item whose bytes the service reads later', async () => {
  await using directory = await temporaryDirectory()
  const catalog = await openSqliteCatalog({ directory: directory.path, writer: 'direct' })
  for (const pictures of [false, true])
    await seedBucket(catalog, `pictures-${pictures}`, { items: 10, pictures })
  expect(await catalog.listUnreadTaken(null, 1)).toEqual([])
  await catalog.close()
})

test('npm run seed works before the first start, and prints one line of JSON', async () => {
  await using directory = await temporaryDirectory()
  prepareDatabase(directory.path)
  const env = {
    ...process.env,
    ...(await databaseSettings(directory.path)),
    MEDIABUCKET_DATA: directory.path,
  }
  const { stdout } = await run(process.execPath, [script, '--items', '3'], { env })
  const { token } = JSON.parse(stdout)
  await using later = await startServer({}, directory.path)
  const page = await readPage(
    await later.request('/api/media', { headers: { authorization: `Bearer ${token}` } }),
  )
  expect(page.total).toBe(3)
})

test('npm run seed prints its usage, and says what is wrong with its arguments', async () => {
  const { stdout } = await run(process.execPath, [script, '--help'])
  expect(stdout).toMatch(/^Usage: npm run seed -- --items N/)
  const failure = await run(process.execPath, [script, '--itmes', '3']).catch((error) => error)
  expect(failure).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^Unknown option '--itmes'.*\n\nUsage: /s),
  })
})

test.each([
  [[], /--items takes a whole number of at least 1/],
  [['--items', '1e3'], /--items .*not "1e3"/],
  [['--items', '10', '--delete-every', '0'], /--delete-every .*not "0"/],
  [['--items', '10', '--bucket', 'No'], /lower-case letters/],
  [['10'], /'10'/],
])('invalid arguments of seed are refused: %j', async (args, message) => {
  await expect(seed(server, ...args)).rejects.toThrow(message)
})
