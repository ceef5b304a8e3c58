import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import {
  hollowPng,
  noise,
  quarters,
  renderCount,
  renderersOf,
  storedVariants,
  uploadPicture,
  variantUrl,
} from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { fsck } from '../harness/upkeep.ts'
import { blobPath, onDisk } from '../harness/upload.ts'

/** For tests that need no settings and stop nothing. */
let shared: TestServer
beforeAll(async () => {
  shared = await startServer()
})
afterAll(() => shared[Symbol.asyncDispose]())

const png = () => quarters(900, 600).png().toBuffer()

const variantCount = (server: TestServer): number => Object.values(storedVariants(server)).flat().length

const bytesOf = async (response: Response) => {
  expect(response.status).toBe(200)
  return Buffer.from(await response.arrayBuffer())
}

test('V5 simultaneous requests for a variant share one rendering, and the variant is stored for later starts', async () => {
  await using server = await startServer()
  const { id } = await uploadPicture(server, png(), 'image/png')
  const [first, ...others] = await Promise.all(
    Array.from({ length: 30 }, async () => bytesOf(await fetch(variantUrl(server, id)))),
  )
  for (const bytes of others) expect(bytes).toEqual(first)
  expect(await renderCount(server)).toBe(1)
  await until('it is stored', () => variantCount(server) === 1)
  expect(await bytesOf(await fetch(variantUrl(server, id)))).toEqual(first)
  expect(await renderCount(server)).toBe(1)
  await server.stop()

  await using later = await startServer({ MEDIABUCKET_CACHE: '0' }, server.data)
  expect(await bytesOf(await fetch(variantUrl(later, id)))).toEqual(first)
  expect(await renderCount(later)).toBe(0)
  // An operator may remove variants at any time; they are rendered again.
  for (const name of await readdir(later.data))
    if (name.startsWith('variants')) await rm(join(later.data, name), { recursive: true })
  expect(await bytesOf(await fetch(variantUrl(later, id)))).toEqual(first)
  expect(await renderCount(later)).toBe(1)
})

test('V5 a client that disconnects does not abort the rendering for others', async () => {
  const before = await renderCount(shared)
  const { id } = await uploadPicture(shared, png(), 'image/png')
  const leaving = await openConnection(shared.url)
  leaving.send(`GET /media/${id}?variant=thumb HTTP/1.1\r\nHost: x\r\n\r\n`)
  // The server reads requests in the order of their arrival, so this response shows that it has read the first one.
  await fetch(`${shared.url}/healthz`)
  const waiting = fetch(variantUrl(shared, id))
  leaving[Symbol.dispose]()
  await bytesOf(await waiting)
  expect(await renderCount(shared)).toBe(before + 1)
})

test('V17 a request that does not wait gets a 202 while the variant is rendered, and the variant later', async () => {
  const { id } = await uploadPicture(shared, png(), 'image/png')
  const url = `${variantUrl(shared, id)}&wait=0`
  const other = await uploadPicture(shared, png(), 'image/png')
  await bytesOf(await fetch(variantUrl(shared, other.id)))
  const before = await renderCount(shared)
  const renderers = renderersOf(shared)
  expect(renderers).not.toEqual([])
  for (const pid of renderers) process.kill(pid, 'SIGSTOP')
  for (const method of ['GET', 'HEAD']) {
    const response = await fetch(url, { method })
    expect([response.status, await response.text()]).toEqual([202, ''])
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'retry-after': '1',
      'cache-control': 'no-store',
      'content-length': '0',
      'x-content-type-options': 'nosniff',
    })
  }
  const waiting = fetch(variantUrl(shared, id))
  expect((await fetch(url)).status).toBe(202)
  for (const pid of renderers) process.kill(pid, 'SIGCONT')
  const rendered = await bytesOf(await waiting)
  expect(await bytesOf(await fetch(url))).toEqual(rendered)
  expect(await renderCount(shared)).toBe(before + 1)
  const [damaged, text] = [hollowPng(40, 40), Buffer.from('text')]
  for (const [bytes, type] of [
    [damaged, 'image/png'],
    [text, 'text/plain'],
  ] as const) {
    const item = await uploadPicture(shared, bytes, type)
    await expectProblem(await fetch(`${variantUrl(shared, item.id)}&wait=20`), 404, 'variant-unavailable')
    await expectProblem(await fetch(`${variantUrl(shared, item.id)}&wait=0`), 404, 'variant-unavailable')
  }
  for (const wait of ['-1', '61', '01', '1.5', '', 'x', '0&wait=0'])
    await expectProblem(await fetch(`${variantUrl(shared, id)}&wait=${wait}`), 400, 'parameter-malformed')
})

test('V7 deleting an item removes its variants at once, also from the disk', async () => {
  await using server = await startServer()
  const { id } = await uploadPicture(server, noise(1000).jpeg().toBuffer(), 'image/jpeg')
  for (const variant of ['thumb', 'medium']) await bytesOf(await fetch(variantUrl(server, id, variant)))
  await until('both are stored', () => variantCount(server) === 2)
  expect(storedVariants(server)).toEqual({ rows: [`${id}.thumb-3`], files: [`${id}.medium-3`] })
  await server.request(`/api/media/${id}`, { method: 'DELETE' })
  for (const variant of ['thumb', 'medium'])
    await expectProblem(await fetch(variantUrl(server, id, variant)), 404, 'media-unknown')
  await until('both are gone', () => variantCount(server) === 0)
})

test('V5 with MEDIABUCKET_INLINE_SIZE=0 all variants are files', async () => {
  await using server = await startServer(onDisk)
  const { id } = await uploadPicture(server, png(), 'image/png')
  const thumb = await bytesOf(await fetch(variantUrl(server, id)))
  await until('it is stored', () => variantCount(server) === 1)
  expect(storedVariants(server)).toEqual({ rows: [], files: [`${id}.thumb-3`] })
  expect(await bytesOf(await fetch(variantUrl(server, id)))).toEqual(thumb)
})

test('V5 a start with a damaged variants.db logs it, and variants are rendered again', async () => {
  await using server = await startServer()
  const { id } = await uploadPicture(server, png(), 'image/png')
  const thumb = await bytesOf(await fetch(variantUrl(server, id)))
  await server.stop()
  await writeFile(join(server.data, 'variants.db'), 'x'.repeat(10_000))
  await using later = await startServer({}, server.data)
  expect(await bytesOf(await fetch(variantUrl(later, id)))).toEqual(thumb)
  await until('it is stored again', () => storedVariants(later).rows.length === 1)
  expect(later.log().find(({ msg }) => msg.startsWith('variants.db was damaged'))).toMatchObject({
    level: 40,
  })
})

test('V7 an item that is deleted while its variants are rendered has no variants afterwards', async () => {
  await using server = await startServer()
  for (let round = 0; round < 5; round += 1) {
    const { id } = await uploadPicture(server, png(), 'image/png')
    const asked = ['thumb', 'medium'].map((variant) => fetch(variantUrl(server, id, variant)))
    await server.request(`/api/media/${id}`, { method: 'DELETE' })
    for (const response of await Promise.all(asked)) expect([200, 404]).toContain(response.status)
    await expectProblem(await fetch(variantUrl(server, id)), 404, 'media-unknown')
  }
  await server.stop()
  expect(variantCount(server)).toBe(0)
  expect(await fsck(server.data)).toMatchObject({ code: 0, found: {} })
})

test('V7, B9, F3 if the bytes of an item are damaged or missing, requests for its variants fail as those for its bytes do', async () => {
  await using server = await startServer({ ...onDisk, MEDIABUCKET_CACHE: '0' })
  const items = [
    await uploadPicture(server, png(), 'image/png'),
    await uploadPicture(server, png(), 'image/png'),
  ]
  for (const { id } of items) await bytesOf(await fetch(variantUrl(server, id)))
  const [gone, changed] = items
  if (!gone || !changed) throw new Error('two items')
  await rm(blobPath(server, gone.id))
  const bytes = await readFile(blobPath(server, changed.id))
  bytes[100] = (bytes[100] ?? 0) ^ 1
  await writeFile(blobPath(server, changed.id), bytes)
  expect((await fsck(server.data, '--verify-bytes')).code).toBe(1)
  for (const { id } of items)
    for (const variant of ['thumb', 'medium'])
      await expectProblem(await fetch(variantUrl(server, id, variant)), 500, 'bytes-missing')
})

/** Makes the decoder fail to load. The service starts picture processes with an empty environment, so `fork` is replaced too. */
const withoutDecoder = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(
    `import processes from 'node:child_process'
    import { registerHooks, syncBuiltinESMExports } from 'node:module'
    const { fork } = processes
    const { NODE_OPTIONS } = process.env
    processes.fork = (file, args, options) => fork(file, args, { ...options, env: { ...options.env, NODE_OPTIONS } })
    syncBuiltinESMExports()
    registerHooks({ resolve(name, context, next) {
      if (name === 'sharp') throw new Error('no decoder for this machine')
      return next(name, context)
    } })`,
  )}`,
}

test('V10 without the decoder everything else is served, and the log has the reason once', async () => {
  await using server = await startServer(withoutDecoder)
  const { id, url, width, height } = await uploadPicture(server, png(), 'image/png')
  expect([width, height]).toEqual([null, null])
  for (const variant of ['thumb', 'thumb', 'medium']) {
    const { detail } = await expectProblem(
      await fetch(variantUrl(server, id, variant)),
      404,
      'variant-unavailable',
    )
    expect(detail).toContain('platform')
  }
  await bytesOf(await fetch(url))
  await server.stop()
  expect(server.log().filter(({ reason }) => /no decoder/.test(String(reason)))).toHaveLength(1)
})
