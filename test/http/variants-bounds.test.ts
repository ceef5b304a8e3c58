import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { freshMetrics } from '../harness/fresh-metrics.ts'
import { animation, cornersOf, hollowPng, quarters, uploadPicture, variantUrl } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { memory } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { upload } from '../harness/upload.ts'

const refused = async (server: TestServer, id: string) =>
  (await expectProblem(await fetch(variantUrl(server, id)), 404, 'variant-unavailable')).detail

test('V6, V8 a picture with a header of 50,000 × 50,000 pixels is stored with its dimensions, has no variant, and uses no memory', async () => {
  await using server = await startServer()
  const warm = await uploadPicture(server, quarters(60, 40).png().toBuffer(), 'image/png')
  await fetch(variantUrl(server, warm.id))
  const before = await memory(server)
  const bomb = await upload(server, hollowPng(50_000, 50_000), { name: 'bomb.png', type: 'image/png' })
  expect(bomb).toMatchObject({ content_type: 'image/png', width: 50_000, height: 50_000 })
  for (let times = 0; times < 20; times += 1) expect(await refused(server, bomb.id)).toContain('pixels')
  expect((await memory(server)).peak - before.peak).toBeLessThan(50e6)
})

test('V6, V2 an animated picture of 200 frames uses no more memory than its first frame', async () => {
  await using server = await startServer()
  const bytes = await (await animation(200, 300)).gif().toBuffer()
  expect(await sharp(bytes).metadata()).toMatchObject({ pages: 200 })
  const before = await memory(server)
  const { id } = await uploadPicture(server, bytes, 'image/gif')
  const response = await fetch(variantUrl(server, id))
  expect(response.status).toBe(200)
  expect(await cornersOf(new Uint8Array(await response.arrayBuffer()))).toEqual(Array(4).fill('blue'))
  expect((await memory(server)).peak - before.peak).toBeLessThan(50e6)
})

test('V6 a picture above the limit of pixels has no variant', async () => {
  await using server = await startServer()
  const above = await uploadPicture(server, hollowPng(20_000, 10_001), 'image/png')
  expect(await refused(server, above.id)).toContain('pixels')
  const within = await uploadPicture(server, quarters(10_000, 20).png().toBuffer(), 'image/png')
  expect((await fetch(variantUrl(server, within.id))).status).toBe(200)
})

test('V6 a picture above the time limit has no variant, and is not tried after a restart, unless the limit is another one', async () => {
  const settings = { MEDIABUCKET_VARIANT_TIMEOUT: '1ms' }
  await using server = await startServer(settings)
  // Decoding it takes many times the limit. A busy service may receive a small variant before it notices that the time is over.
  const { id } = await uploadPicture(server, quarters(4_000, 3_000).png().toBuffer(), 'image/png')
  expect(await refused(server, id)).toContain('time')
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
  await server.stop()
  {
    await using restarted = await startServer(settings, server.data)
    expect(await refused(restarted, id)).toContain('time')
    expect(await freshMetrics(restarted.url)).not.toContain('outcome="too-hard"')
  }
  await using patient = await startServer({}, server.data)
  expect((await fetch(variantUrl(patient, id))).status).toBe(200)
})

test('V6 a picture above the memory limit has no variant, and the next one has', async () => {
  await using server = await startServer({
    MEDIABUCKET_VARIANT_MEMORY: '200MB',
    MEDIABUCKET_VARIANT_PROCESSES: '1',
  })
  // Interlaced, so that all of it must be held at once: 300 MB.
  const sent = await sharp({ create: { width: 10_000, height: 10_000, channels: 3, background: 'red' } })
    .png({ progressive: true, compressionLevel: 1 })
    .toBuffer()
  const hungry = await uploadPicture(server, sent, 'image/png')
  const modest = await uploadPicture(server, quarters(60, 40).png().toBuffer(), 'image/png')
  const [detail, response] = await Promise.all([
    refused(server, hungry.id),
    fetch(variantUrl(server, modest.id)),
  ])
  expect([detail, response.status]).toEqual([expect.stringContaining('memory'), 200])
})

/** A module that is loaded before the service: no process can be started while this file exists, as on a machine without memory. */
const noProcesses = (path: string) =>
  `data:text/javascript,${encodeURIComponent(`
  import childProcess from 'node:child_process'
  import { existsSync } from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  const { fork } = childProcess
  childProcess.fork = (...args) => {
    if (!existsSync(${JSON.stringify(path)})) return fork(...args)
    throw Object.assign(new Error('spawn EAGAIN'), { code: 'EAGAIN', syscall: 'spawn' })
  }
  syncBuiltinESMExports()
`)}`

test('V6 requests that no process can take get 503 problems with Retry-After, and succeed when they are repeated', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'full')
  await writeFile(path, '')
  await using server = await startServer({ NODE_OPTIONS: `--import ${noProcesses(path)}` })
  const { id } = await uploadPicture(server, quarters(10, 10).png().toBuffer(), 'image/png')
  const response = await fetch(variantUrl(server, id))
  expect(response.headers.get('retry-after')).toMatch(/^\d+$/)
  await expectProblem(response, 503, 'variants-busy')
  await rm(path)
  expect((await fetch(variantUrl(server, id))).status).toBe(200)
})
