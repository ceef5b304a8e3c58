import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@mediabucket/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { expectProblem } from '../harness/problem.ts'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { upload } from '../harness/upload.ts'
import { connectToWorkers } from '../harness/workers.ts'
import { runClient } from './client-run.ts'

let server: TestServer
let item: Awaited<ReturnType<typeof upload>>
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_WORKERS: '2', MEDIABUCKET_MAX_LINK_LIFETIME: '30d' })
  await runHere(server.data, 'bucket set', 'default', '--private', 'on')
  item = await upload(server, 'text', { name: 'a.txt' })
})
afterAll(() => server[Symbol.asyncDispose]())

const link = (...args: string[]) => runClient(server, 'link', ...args)
const statusOf = async (url: string, at = server.url) => {
  const { pathname, search } = new URL(url)
  return (await fetch(`${at}${pathname}${search}`)).status
}
const keys = async () =>
  (await server.command('keys', 'list', '--json')).stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line): unknown => JSON.parse(line))
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)

test('H7 mediabucket link prints signed URLs, in the order of its arguments', async () => {
  const other = await upload(server, 'other')
  const { code, stdout, stderr } = await link(other.id, item.url, '--expires', '30d')
  const [first = '', second = ''] = stdout.trim().split('\n')
  expect([code, first.startsWith(other.url), second.startsWith(item.url)]).toEqual([0, true, true])
  expect(stderr).toMatch(/^Valid until \d{4}-/)
  expect([await statusOf(first), await statusOf(second)]).toEqual([200, 200])
  const got = await runClient(server, 'get', second)
  expect([got.code, got.stdout]).toEqual([0, 'text'])
  const saved = await link(item.id, '--download')
  const response = await fetch(saved.stdout.trim())
  expect(response.headers.get('content-disposition')).toBe('attachment; filename=a.txt')
})

test('B13, H7 mediabucket link --names prints signed URLs with the names of the items', async () => {
  const { stdout } = await link(item.id, '--names')
  const url = stdout.trim()
  expect(url.startsWith(`${item.url.replace(/\.txt$/, '/a.txt')}?`)).toBe(true)
  expect(await statusOf(url)).toBe(200)
})

test('mediabucket link reports missing items and invalid arguments', async () => {
  const missing = await link(item.id, 'k92v8d0q3h5wkc9r1n6x7zjy4tam')
  expect([missing.code, missing.stdout.split('\n').length]).toEqual([4, 2])
  expect(missing.stderr).toContain('k92v8d0q3h5wkc9r1n6x7zjy4tam: There is no such item.')
  for (const args of [[], [item.id, '--expires', '1'], [item.id, '--expires', '0d']])
    expect((await link(...args)).code).toBe(2)
  const long = await link(item.id, '--expires', '31d')
  expect([long.code, long.stderr]).toEqual([
    2,
    'mediabucket: --expires is above the limit of 30d of the service. Use a shorter duration, or raise MEDIABUCKET_MAX_LINK_LIFETIME where the service runs\n',
  ])
  for (const name of ['', 'large'])
    expect(await link(item.id, '--variant', name)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: `mediabucket: --variant takes one of thumb, medium, *, not "${name}"\n`,
    })
  const changed = await runClient(server, 'get', `${item.url}?expires=1&key=a&signature=b`)
  expect([changed.code, changed.stderr]).toEqual([3, expect.stringContaining('its key was removed')])
})

test('H2 mediabucket get sends the token for an item of a private bucket', async () => {
  for (const reference of [item.id, item.url]) {
    const { code, stdout } = await runClient(server, 'get', reference)
    expect([code, stdout]).toEqual([0, 'text'])
  }
})

test('H7 the client creates links', async () => {
  const client = createClient({ url: server.url, token: server.token })
  const single = await client.createLink(item.url, { expiresIn: 60, download: true })
  expect(await statusOf(single.url)).toBe(200)
  expect(single.url).toContain('download=1')
  const missing = 'k92v8d0q3h5wkc9r1n6x7zjy4tam'
  const many = Array.from({ length: 501 }, (_, index) => `${missing.slice(0, -3)}${100 + (index % 900)}`)
  const links = await client.createLinks([item.url, ...many, item.id])
  expect([...links.urls.keys()]).toEqual([item.url, item.id])
  expect(links.missing).toHaveLength(501)
  expect(await statusOf(links.urls.get(item.id) ?? '')).toBe(200)
  expect(Date.parse(links.expires_at)).toBeGreaterThan(Date.now())
  expect(await client.bucket()).toMatchObject({ private: true, signed_pages: false })
  expect(await (await client.get(item.id)).text()).toBe('text')
  await expect(client.createLink(missing)).rejects.toMatchObject({ status: 404 })
})

test('H8, H9 keys are rotated and removed, in every process, and valid after a restart and a restore', async () => {
  const early = (await link(item.id)).stdout.trim()
  const [first] = await keys()
  expect(await keys()).toEqual([
    { id: expect.stringMatching(/^[a-z0-9]{12}$/), state: 'signs', created_at: time },
  ])
  const { stdout: rotated } = await server.command('keys', 'rotate')
  const late = (await link(item.id)).stdout.trim()
  expect(late).toContain(`key=${rotated.trim()}`)
  expect(await keys()).toEqual([
    { ...(first as object), state: 'verifies' },
    { id: rotated.trim(), state: 'signs', created_at: time },
  ])
  const workers = await connectToWorkers(server)
  expect(workers).toHaveLength(2)
  const onAll = async () =>
    Promise.all(
      workers.map(async (worker) => {
        const statuses = []
        for (const url of [early, late, item.url]) {
          const { pathname, search } = new URL(url)
          statuses.push((await worker.request(pathname + search, { headers: { authorization: '' } })).status)
        }
        return statuses
      }),
    )
  expect(await onAll()).toEqual([
    [200, 200, 401],
    [200, 200, 401],
  ])
  await server.command('keys', 'remove', new URL(early).searchParams.get('key') ?? '')
  expect(await onAll()).toEqual([
    [403, 200, 401],
    [403, 200, 401],
  ])
  await expectProblem(await fetch(early), 403, 'signature-invalid')
  await runHere(server.data, 'bucket set', 'default', '--private', 'off')
  expect((await onAll()).map(([, , plain]) => plain)).toEqual([200, 200])
  await runHere(server.data, 'bucket set', 'default', '--private', 'on')
  // The newest key, of which no older one takes the place.
  await server.command('keys', 'rotate')
  const [older, newest] = (await keys()).map((key) => (key as { readonly id: string }).id)
  await server.command('keys', 'remove', newest ?? '')
  const after = (await link(item.id)).stdout.trim()
  expect(await keys()).toEqual([
    expect.objectContaining({ id: older, state: 'verifies' }),
    expect.objectContaining({ id: new URL(after).searchParams.get('key'), state: 'signs' }),
  ])
  expect([older, newest]).not.toContain(new URL(after).searchParams.get('key'))
  expect([await statusOf(late), await statusOf(after)]).toEqual([200, 200])
  for (const worker of workers) worker[Symbol.dispose]()
  await expect(server.command('keys', 'remove', 'x')).rejects.toMatchObject({ code: 4 })

  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-keys-'))
  try {
    await server.command('backup', join(directory, 'backup'))
    await runCommand(['restore', join(directory, 'backup')], { MEDIABUCKET_DATA: join(directory, 'data') })
    await server.stop()
    for (const data of [server.data, join(directory, 'data')]) {
      await using later = await startServer({}, data)
      expect([await statusOf(late, later.url), await statusOf(item.url, later.url)]).toEqual([200, 404])
    }
  } finally {
    await rm(directory, { recursive: true })
  }
})
