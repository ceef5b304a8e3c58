import {
  appendFile,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { blobPath, upload } from '../harness/upload.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

/** Larger than a file that is stored in the catalog. */
const large = 'x'.repeat(70_000)

describe('B8 links in the data directory', () => {
  /** An item whose file is a link to a secret, and one whose directory is a link to another directory. */
  async function plant() {
    const [leaf, parent] = [await upload(server, large), await upload(server, large)]
    const outside = await mkdtemp(join(tmpdir(), 'mediabucket-outside-'))
    await writeFile(join(outside, 'secret'), 'root')
    await writeFile(join(outside, parent.id), 'root')
    await rm(blobPath(server, leaf.id))
    await symlink(join(outside, 'secret'), blobPath(server, leaf.id))
    const shard = dirname(blobPath(server, parent.id))
    await rename(shard, `${shard}-aside`)
    await symlink(outside, shard)
    return {
      leaf,
      parent,
      targets: async () => [await readdir(outside), await readFile(join(outside, 'secret'), 'utf8')],
      async [Symbol.asyncDispose]() {
        await rm(shard)
        await rename(`${shard}-aside`, shard)
        await rm(outside, { recursive: true })
      },
    }
  }

  test('B8 the target of a link is not served', async () => {
    await using planted = await plant()
    for (const { url } of [planted.leaf, planted.parent]) {
      await expectProblem(await fetch(url), 404, 'media-unknown')
      expect((await fetch(url, { method: 'HEAD' })).status).toBe(404)
      await expectProblem(await fetch(url, { headers: { range: 'bytes=0-1' } }), 404, 'media-unknown')
    }
  })

  test('B8 the target of a link is not removed with its item', async () => {
    await using planted = await plant()
    const before = await planted.targets()
    for (const { id } of [planted.leaf, planted.parent]) {
      expect((await server.request(`/api/media/${id}`, { method: 'DELETE' })).status).toBe(204)
    }
    await until('the file of the second item is reported', () =>
      server.log().some(({ id }) => id === planted.parent.id),
    )
    expect(await planted.targets()).toEqual(before)
  })
})

describe('B9 bytes that do not match their row', () => {
  test.each([
    ['gone', (path: string) => rm(path)],
    ['cut short', (path: string) => truncate(path, 3)],
    ['too long', (path: string) => appendFile(path, 'more')],
  ])(
    'B9, P3 a request for bytes that are %s gets a 500 problem, and the log names the item',
    async (_, damage) => {
      const { id, url } = await upload(server, large)
      await damage(blobPath(server, id))
      const response = await fetch(url)
      for (const name of ['etag', 'last-modified', 'content-disposition', 'accept-ranges', 'content-range']) {
        expect([name, response.headers.get(name)]).toEqual([name, null])
      }
      const { instance } = await expectProblem(response, 500, 'bytes-missing')
      const ranged = await fetch(url, { headers: { range: 'bytes=0-1' } })
      expect(ranged.headers.get('content-range')).toBe(null)
      await expectProblem(ranged, 500, 'bytes-missing')
      const head = await fetch(url, { method: 'HEAD' })
      expect([head.status, head.headers.get('cache-control')]).toEqual([500, 'no-store'])

      const lines = await until('the request is logged', () => {
        const found = server.log().filter(({ requestId }) => requestId === instance)
        return found.some(({ msg }) => msg === 'completed') && found
      })
      expect(lines).toContainEqual(expect.objectContaining({ level: 50, err: expect.anything() }))
      expect(lines).toContainEqual(expect.objectContaining({ path: new URL(url).pathname, status: 500 }))
      expect((await server.request(`/api/media/${id}`)).status).toBe(200)
    },
  )

  test('B9, S9 while the directory is missing, a request for any item gets a 503 problem, not a 404', async () => {
    const { url } = await upload(server, large)
    const root = join(server.data, 'blobs')
    await rename(root, `${root}-aside`)
    try {
      await expectProblem(await fetch(url), 503, 'storage-unavailable')
    } finally {
      await rename(`${root}-aside`, root)
    }
    expect(await (await fetch(url)).text()).toBe(large)
  })
})
