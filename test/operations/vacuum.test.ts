import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { seed } from '../harness/seed.ts'
import { startServer } from '../harness/server.ts'
import { brokenItems, fsck, listAll } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'

const catalogSize = (data: string) => statSync(join(data, 'catalog.db')).size

test('F9 vacuum returns free space while the service is running and storing uploads', async () => {
  await using server = await startServer()
  await seed(server, '--items', '40000')
  await server.command('bucket', 'delete', 'seeded', '--yes')
  const stored = [await upload(server, 'before')]
  let running = true
  const uploads = (async () => {
    while (running) stored.push(await upload(server, 'beside'))
  })()
  const { stdout } = await server.command('vacuum')
  running = false
  await uploads
  expect(stdout).toMatch(/^Returned [\d.]+ MB; catalog\.db has [\d.]+ [kM]B\.\n$/)
  const urls = await listAll(server)
  expect([urls.length, await brokenItems(server, urls)]).toEqual([stored.length, []])
  await server.stop()
  expect(catalogSize(server.data)).toBeLessThan(3_000_000)
  expect(await fsck(server.data)).toMatchObject({ code: 0, found: {} })
})
