import { existsSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { fsck, outcome } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'

/** The line of a failed start, which `serve --check --connect` prints too. */
const failedStart = async (data: string): Promise<string> => {
  const checked = await failureOf(data, '--check', '--connect')
  const line = await failureOf(data)
  expect(checked).toBe(line)
  return line
}

const failureOf = async (data: string, ...options: readonly string[]): Promise<string> => {
  const settings = { MEDIABUCKET_DATA: data, MEDIABUCKET_PORT: '0' }
  const failure = await runCommand(['serve', ...options], settings).catch((e) => e)
  expect(failure).toMatchObject({ code: 1, stdout: '' })
  // The log may contain warnings before it.
  const line = failure.stderr.replace(/^\{.*\}\n/gm, '')
  expect(line).toMatch(/^mediabucket: [^\n]+\n$/)
  return line
}

/** Larger than a file that is stored in the catalog. */
const large = 'x'.repeat(100_000)

async function stoppedServer(): Promise<TestServer> {
  const server = await startServer()
  await upload(server, 'small')
  await upload(server, large)
  await server.stop()
  return server
}

test('S9, O14 a start refuses a blobs directory that is missing, empty or of other data, and changes nothing', async () => {
  await using server = await stoppedServer()
  await using other = await stoppedServer()
  const blobs = join(server.data, 'blobs')
  const aside = join(server.data, 'aside')
  await rename(blobs, aside)
  expect(await failedStart(server.data)).toMatch(/blobs is not the directory.*mounted.*Mount/)
  expect(existsSync(blobs)).toBe(false)
  await mkdir(blobs)
  expect(await failedStart(server.data)).toMatch(/blobs is not the directory.*mounted.*Mount/)
  expect(await readdir(blobs)).toEqual([])
  await cp(join(other.data, 'blobs'), blobs, { recursive: true })
  expect(await failedStart(server.data)).toMatch(
    /blobs holds the bytes of another catalog.*Mount the right disk/,
  )
  await rm(blobs, { recursive: true })
  await rename(aside, blobs)
  await using again = await startServer({}, server.data)
  expect((await upload(again, large, { authorization: `Bearer ${server.token}` })).size).toBe(100_000)
})

test('S9 commands that read or remove bytes refuse a blobs directory of other data, and change nothing', async () => {
  await using server = await stoppedServer()
  const blobs = join(server.data, 'blobs')
  const aside = join(server.data, 'aside')
  await rename(blobs, aside)
  const backup = join(server.data, '..', `${basename(server.data)}-backup`)
  for (const args of [
    ['fsck', '--repair'],
    ['backup', backup],
    ['bucket', 'delete', 'default', '--yes'],
  ]) {
    const { code, stdout, stderr } = await outcome(args, server.data)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^mediabucket: \S+blobs is not the directory.*mounted.*Mount/)
  }
  expect([existsSync(blobs), existsSync(backup)]).toEqual([false, false])
  await rename(aside, blobs)
  expect(await fsck(server.data)).toMatchObject({ code: 0, found: {}, report: { items: 2 } })
})

test('S9 the remedy that the message names works', async () => {
  await using server = await stoppedServer()
  const identity = join(server.data, 'blobs', '.identity')
  await rm(identity)
  const [, expectedIdentity] = /write (\w+) into \S+\/\.identity/.exec(await failedStart(server.data)) ?? []
  await writeFile(identity, `${expectedIdentity}\n`)
  await using again = await startServer({}, server.data)
  expect((await fetch(`${again.url}/readyz`)).status).toBe(200)
})

test('S9 a new catalog beside the bytes of another one is refused', async () => {
  await using server = await stoppedServer()
  for (const name of ['catalog.db', 'catalog.db-ballast']) await rm(join(server.data, name), { force: true })
  expect(await failedStart(server.data)).toMatch(/catalog\.db is new.*restore/)
  expect(await outcome(['fsck', '--repair'], server.data)).toMatchObject({
    ...{ code: 1, stdout: '' },
    stderr: expect.stringMatching(/may hold the bytes of another catalog.*start it once/),
  })
})

test('S9 restored data receive an identity if their bytes exist', async () => {
  await using server = await stoppedServer()
  const backup = `${server.data}-backup`
  try {
    await runCommand(['backup', backup], { MEDIABUCKET_DATA: server.data })
    const restored = join(server.data, 'restored')
    await runCommand(['restore', backup], { MEDIABUCKET_DATA: restored })
    await rename(join(restored, 'blobs'), join(restored, 'aside'))
    expect(await failedStart(restored)).toMatch(/blobs does not have the bytes of the items/)
    await rm(join(restored, 'blobs'), { recursive: true, force: true })
    await rename(join(restored, 'aside'), join(restored, 'blobs'))
    await using again = await startServer({}, restored)
    expect((await fetch(`${again.url}/readyz`)).status).toBe(200)
    expect(await readFile(join(restored, 'blobs', '.identity'), 'utf8')).toMatch(/^[0-9a-f]{32}\n$/)
    expect((await runCommand(['fsck'], { MEDIABUCKET_DATA: restored })).stdout).toContain(
      'No faults were found.',
    )
  } finally {
    await rm(backup, { recursive: true, force: true })
  }
})

test('S9, O1 while the blobs directory of a running service is missing, large files and their uploads receive 503; then it recovers', async () => {
  await using server = await startServer()
  const { url } = await upload(server, large)
  const blobs = join(server.data, 'blobs')
  const aside = join(server.data, 'aside')
  await rename(blobs, aside)
  for (const replace of [async () => undefined, () => mkdir(blobs)]) {
    await replace()
    const responses = [await fetch(url), await server.request('/api/media', { method: 'POST', body: large })]
    for (const response of responses) {
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      await expectProblem(response, 503, 'storage-unavailable')
    }
    await expectProblem(await fetch(`${server.url}/readyz`), 503, 'not-ready')
    expect((await server.request('/api/media')).status).toBe(200)
    const small = await upload(server, 'small')
    expect(await (await fetch(small.url)).text()).toBe('small')
  }
  expect(await readdir(blobs)).toEqual([])
  await rm(blobs, { recursive: true })
  await rename(aside, blobs)
  expect(await (await fetch(url)).text()).toBe(large)
  expect((await upload(server, 'small')).size).toBe(5)
  await until('it is ready', async () => (await fetch(`${server.url}/readyz?writes`)).ok)
})
