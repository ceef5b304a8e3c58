import { statfsSync, statSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { canMount, smallDisk } from '../harness/small-disk.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { brokenItems, listAll } from '../harness/upkeep.ts'

const isSkipped = process.env['CI'] === undefined && !(await canMount())

const freeOf = (path: string) => {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

const pathOf = (url: string) => new URL(url).pathname

const megabyte = 1_000_000
const bytes = (size: number) => new Uint8Array(size).fill(7)

/** A body without Content-Length. */
const undeclared = (size: number) =>
  ({ body: new Blob([bytes(size)]).stream(), duplex: 'half' }) as unknown as RequestInit

function clientOf(server: TestServer, token: string) {
  const authorization = `Bearer ${token}`
  const send = (path: string, init: RequestInit) =>
    server.request(path, { ...init, headers: { authorization, ...init.headers } })
  return {
    authorization,
    raw: (size: number) => send('/api/media', { method: 'POST', body: bytes(size) }),
    chunked: (size: number) => send('/api/media', { method: 'POST', ...undeclared(size) }),
    form(size: number) {
      const body = new FormData()
      body.append('file', new File([bytes(size)], 'file.bin'))
      return send('/api/media', { method: 'POST', body })
    },
    tus: tusOf(server, authorization),
    items: () => listAll(server, authorization),
    remove: (url: string) => send(`/api/media/${/media\/(\w+)/.exec(url)?.[1]}`, { method: 'DELETE' }),
    readiness: async (): Promise<unknown> => (await fetch(`${server.url}/readyz`)).json(),
  }
}

describe.skipIf(isSkipped)('a small disk', () => {
  test('S4, O1 uploads stop at the reserve; a killed server starts, lists, deletes and stores again', async () => {
    await using disk = await smallDisk(40)
    await using server = await startServer({}, disk.path)
    const reserve = 4 * 1024 * 1024
    let client = clientOf(server, server.token)
    // A resumable upload that was created while there was room.
    const unfinished = await client.tus.createWithLength(20 * megabyte)
    const statuses = new Set<number>()
    for (let tries = 0; tries < 40 && !statuses.has(507); tries += 1)
      statuses.add((await client.raw(2 * megabyte)).status)
    expect([...statuses]).toEqual([201, 507])
    for (const send of [client.raw, client.chunked, client.form])
      await expectProblem(await send(4 * megabyte), 507, 'storage-full')
    const all = await Promise.all(
      [client.chunked, client.chunked, client.raw].map((send) => send(5 * megabyte)),
    )
    expect(all.map(({ status }) => status)).toEqual([507, 507, 507])
    const create = { 'upload-length': `${5 * megabyte}` }
    await expectProblem(await client.tus.send('POST', '/api/uploads', create), 507, 'storage-full')
    await expectProblem(await client.tus.sendChunk(unfinished, 0, bytes(20 * megabyte)), 507, 'storage-full')
    expect(freeOf(disk.path)).toBeGreaterThan(reserve / 4)
    const stored = await client.items()

    await server.kill()
    await using later = await startServer({}, disk.path)
    client = clientOf(later, server.token)
    await expectProblem(await client.raw(5 * megabyte), 507, 'storage-full')
    expect((await client.items()).map(pathOf)).toEqual(stored.map(pathOf))
    expect(await brokenItems(later, stored.slice(0, 2), client.authorization)).toEqual([])
    for (const url of stored) expect((await client.remove(url)).status).toBe(204)
    await until('there is room again', () => freeOf(disk.path) > 30 * megabyte)
    expect((await client.raw(5 * megabyte)).status).toBe(201)
    expect(await client.readiness()).toEqual({ status: 'ready', reads: true, writes: true, reasons: [] })
  })

  test.each(['one disk', 'a disk of its own'])(
    'S5, O1 on a disk filled by other programs, with the catalog on %s, everything except uploads continues',
    async (layout) => {
      await using disk = await smallDisk(40)
      await using other = await smallDisk(30)
      const data = layout === 'one disk' ? disk.path : other.path
      if (data === other.path) await symlink(join(disk.path, 'catalog.db'), join(data, 'catalog.db'))
      const ballast = join(disk.path, 'catalog.db-ballast')
      // It is created empty, then written: half of the reserve, which is a tenth of the disk.
      const hasBallast = () => (statSync(ballast, { throwIfNoEntry: false })?.size ?? 0) >= 2 * 1024 * 1024
      await using server = await startServer({}, data)
      let client = clientOf(server, server.token)
      for (let count = 0; count < 30; count += 1) expect((await client.raw(100_000)).status).toBe(201)
      await until('catalog.db-ballast is written', hasBallast)

      await disk.fill()
      expect(freeOf(disk.path)).toBe(0)
      const full = { status: 'ready', reads: true, writes: false, reasons: ['disk-full'] }
      expect(await client.readiness()).toEqual(full)
      for (const send of [client.raw, client.chunked, client.form])
        await expectProblem(await send(10), 507, 'storage-full')
      const errors = () => server.log().filter(({ level, full }) => Number(level) >= 50 && full !== undefined)
      await until('it is logged', () => errors().length > 0)
      expect(errors()).toMatchObject([{ msg: expect.stringContaining('uploads are refused') }])
      await expectProblem(await fetch(`${server.url}/readyz?writes`), 503, 'not-ready')
      await server.kill()

      await using later = await startServer({}, data)
      client = clientOf(later, server.token)
      const stored = await client.items()
      expect(stored).toHaveLength(30)
      expect((await later.command('token', 'create', '--bucket', 'default')).stdout).toMatch(/^mbkt_/)
      for (const url of stored) expect((await client.remove(url)).status).toBe(204)
      expect(await client.items()).toEqual([])

      await disk.free()
      await until('uploads are accepted', async () => (await client.raw(100_000)).status === 201)
      await until('catalog.db-ballast is written again', hasBallast)
    },
  )

  test('S4 on a disk without inodes every kind of upload receives 507, and a resumable one continues afterwards', async () => {
    await using disk = await smallDisk(60, 100)
    await using server = await startServer({ MEDIABUCKET_INLINE_SIZE: '0' }, disk.path)
    const client = clientOf(server, server.token)
    expect((await client.raw(10)).status).toBe(201)
    const size = 200_000
    const created = await client.tus.createWithLength(size)
    const begun = await client.tus.createWithLength(size)
    expect((await client.tus.sendChunk(begun, 0, bytes(1_000))).status).toBe(204)
    const release = await disk.useInodes()
    for (const send of [client.raw, client.chunked, client.form])
      await expectProblem(await send(size), 507, 'storage-full')
    await expectProblem(await client.tus.sendChunk(created, 0, bytes(size)), 507, 'storage-full')
    expect(await client.items()).toHaveLength(1)
    // The file of this one exists; its item needs a directory.
    const last = await client.tus.sendChunk(begun, 1_000, bytes(size - 1_000))
    expect([204, 507]).toContain(last.status)
    await release()
    for (const send of [client.raw, client.chunked, client.form]) expect((await send(size)).status).toBe(201)
    expect((await client.tus.sendChunk(created, 0, bytes(size))).status).toBe(204)
    if (last.status === 507) {
      const offset = await client.tus.offset(begun)
      expect((await client.tus.sendChunk(begun, offset, bytes(size - offset))).status).toBe(204)
    }
    expect(await brokenItems(server, await client.items(), client.authorization)).toEqual([])
    expect(await client.items()).toHaveLength(6)
  })

  test('S4 without a reserve uploads fill the disk completely, and then receive 507', async () => {
    await using disk = await smallDisk(10)
    await using server = await startServer({ MEDIABUCKET_MIN_FREE: '0' }, disk.path)
    const client = clientOf(server, server.token)
    let status = 201
    for (let tries = 0; tries < 40 && status === 201; tries += 1) status = (await client.raw(megabyte)).status
    expect(status).toBe(507)
    expect(freeOf(disk.path)).toBeLessThan(2 * megabyte)
  })
})

test('S4 an explicit reserve is exact to the byte, and an upload is refused before its body is sent', async () => {
  await using directory = await temporaryDirectory()
  const free = freeOf(directory.path)
  await using server = await startServer({ MEDIABUCKET_MIN_FREE: `${free * 2}` })
  const client = clientOf(server, server.token)
  await expectProblem(await client.raw(1), 507, 'storage-full')
  expect(await client.items()).toEqual([])
  expect(await client.readiness()).toMatchObject({ writes: false, reasons: ['disk-full'] })
})
