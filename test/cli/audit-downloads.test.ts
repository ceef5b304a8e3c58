import { randomBytes } from 'node:crypto'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startIssuer, type TestIssuer } from '../harness/issuer.ts'
import { quarters } from '../harness/pictures.ts'
import { basics, runCommand, startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readLink } from '../harness/wire.ts'
import { ocsfSchema } from './ocsf-schema.ts'

interface Download {
  readonly activity_name: string
  readonly time: number
  readonly metadata: { readonly event_code: string; readonly correlation_uid: string }
  readonly actor: {
    readonly user: Readonly<Record<string, unknown>>
    readonly idp?: { readonly name: string }
  }
  readonly src_endpoint: { readonly ip: string }
  readonly file: { readonly uid: string; readonly name: string; readonly size: number }
  readonly unmapped: { readonly detail: Readonly<Record<string, unknown>> }
}

let issuer: TestIssuer
/** Of two processes, with a proxy that sends large files. */
let server: TestServer
beforeAll(async () => {
  issuer = await startIssuer()
  server = await startServer({
    ...issuer.settings,
    MEDIABUCKET_AUDIT: 'all',
    MEDIABUCKET_JWT_CREATE_BUCKETS: 'on',
    MEDIABUCKET_JWT_BUCKET_OPTIONS: 'private=on',
    MEDIABUCKET_WORKERS: basics.MEDIABUCKET_WORKERS ?? '2',
    MEDIABUCKET_ADDRESS_RATE: 'off',
    MEDIABUCKET_SENDFILE: 'x-accel-redirect:/files',
    MEDIABUCKET_TRUSTED_PROXIES: '127.0.0.1',
  })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const downloads = (...options: string[]) => recorded('--action', 'download', ...options)

async function recorded(...options: string[]): Promise<Download[]> {
  const { stdout } = await server.command('audit', '--json', ...options)
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

/** The downloads of the item, once there are `count`. Each process stores its own, so the times have the order. */
async function downloadsOf(id: string, count: number): Promise<Download[]> {
  let found: Download[] = []
  await until(`${count} downloads`, async () => {
    found = await downloads('--item', id)
    return found.length >= count
  })
  return found.toSorted((one, other) => one.time - other.time)
}

/** Statuses of requests for the same bytes, one after the other. */
async function statuses(url: string, requests: readonly RequestInit[]): Promise<number[]> {
  const found: number[] = []
  for (const request of requests) {
    const response = await fetch(url, request)
    await response.arrayBuffer()
    found.push(response.status)
  }
  return found
}

const byLength = (one: object, other: object) => JSON.stringify(one).length - JSON.stringify(other).length
const details = (events: readonly Download[]) => events.map(({ unmapped }) => unmapped.detail)

test('Y8 each response with bytes of a public item has one event; HEAD, 304 and problems have none', async () => {
  const { id, url } = await upload(server, 'some text', { name: 'a.txt' })
  const etag = (await fetch(url, { method: 'HEAD' })).headers.get('etag') ?? ''
  const forwarded = { 'x-forwarded-for': '2001:db8::7' }
  const before = Date.now()
  expect(
    await statuses(url, [
      // The second one is sent from memory.
      { headers: forwarded },
      { headers: forwarded },
      { headers: { ...forwarded, range: 'bytes=5-' } },
      { headers: { ...forwarded, authorization: 'Bearer wrong' } },
      { method: 'HEAD' },
      { headers: { 'if-none-match': etag } },
      { headers: { range: 'bytes=99-' } },
      { headers: { 'if-match': '"other"' } },
    ]),
  ).toEqual([200, 200, 206, 200, 200, 304, 416, 412])
  expect(await statuses(`${url}?download`, [{ headers: forwarded }])).toEqual([200])
  const events = await downloadsOf(id, 5)
  expect(events).toHaveLength(5)
  expect(details(events).toSorted(byLength)).toEqual([{}, {}, {}, {}, { range: '5-8' }])
  for (const { time, actor, src_endpoint, file, activity_name } of events) {
    expect(activity_name).toBe('Download')
    expect(file).toMatchObject({ uid: id, name: 'a.txt', size: 9 })
    expect(actor).toEqual({ user: { name: 'anonymous', type_id: 0, type: 'Unknown' } })
    expect(src_endpoint).toEqual({ ip: '2001:db8::7' })
    expect(time).toBeGreaterThanOrEqual(before)
  }
  const logged = () => new Set(server.log().map(({ requestId }) => requestId))
  await until('the log of the requests', () =>
    events.every(({ metadata }) => logged().has(metadata.correlation_uid)),
  )
  const { stdout } = await server.command('audit', '--item', id, '--action', 'download')
  expect(stdout).toMatch(/Z {2}download +default .* - +2001:db8::7 +a\.txt 9 B range=5-8$/m)
})

test('Y8 downloads of a private bucket have the token or the key; variants have their names', async () => {
  const picture = Uint8Array.from(await quarters(64, 64).png().toBuffer())
  await server.command('bucket', 'create', 'private', '--private', 'on')
  const writer = await makeToken(server, '--bucket', 'private')
  const call = (path: string, init: RequestInit = {}) =>
    server.request(path, { ...init, headers: { ...init.headers, authorization: writer.authorization } })
  const stored = await call('/api/media', { method: 'POST', body: picture })
  const { id, url } = JSON.parse(await stored.text())
  const body = '{"variant":"thumb"}'
  const json = { 'content-type': 'application/json' }
  const { url: signed } = await readLink(
    await call(`/api/media/${id}/links`, { method: 'POST', body, headers: json }),
  )
  expect(await statuses(url, [{ headers: { authorization: writer.authorization } }, {}])).toEqual([200, 404])
  expect(await statuses(signed, [{}, {}])).toEqual([200, 200])

  const events = await downloadsOf(id, 3)
  const [byToken, byLink] = events
  expect(events).toHaveLength(3)
  expect(byToken?.actor.user).toMatchObject({ type: 'System', uid: writer.id })
  const { key, expires } = Object.fromEntries(new URL(signed).searchParams)
  expect(byLink?.actor.user).toEqual({ name: 'anonymous', type_id: 0, type: 'Unknown' })
  const expires_at = new Date(Number(expires) * 1_000).toISOString()
  expect(details(events).slice(1)).toEqual(Array(2).fill({ variant: 'thumb', key, expires_at }))
  expect(await downloads('--token', writer.id)).toEqual([byToken])
  expect(await downloads('--bucket', 'private', '--until', '1h')).toEqual([])
  expect(JSON.stringify(events)).not.toContain('signature')
})

test('J4, Y8 the download of a user of an issuer has the user', async () => {
  const headers = { authorization: `Bearer ${await issuer.sign({ sub: 'anna' })}` }
  const stored = await server.request('/api/media', { method: 'POST', body: 'text', headers })
  const { id, url } = JSON.parse(await stored.text())
  expect(await statuses(url, [{ headers }, {}])).toEqual([200, 404])
  expect((await downloadsOf(id, 1)).map(({ actor }) => actor)).toMatchObject([
    { user: { uid: 'anna', type: 'User' }, idp: { name: issuer.url } },
  ])
})

test('Y8 bytes that a proxy sends have an event, also of a range', async () => {
  const { id, url } = await upload(server, randomBytes(100_000), { name: 'large.bin' })
  expect(await statuses(url, [{}, { headers: { range: 'bytes=0-9' } }])).toEqual([200, 200])
  expect(details(await downloadsOf(id, 2))).toEqual([
    { sent_by: 'proxy' },
    { range: '0-9', sent_by: 'proxy' },
  ])
})

test('Y6, Y8 the export follows the schema of OCSF', async () => {
  await server.command('bucket', 'create', 'ocsf', '--trash-days', '3')
  const { authorization } = await makeToken(server, '--bucket', 'ocsf')
  const { id } = await upload(server, 'text', { authorization })
  await server.request(`/api/media/${id}`, { method: 'DELETE', headers: { authorization } })
  await server.command('bucket', 'set', 'ocsf', '--max-items', '7')
  await server.command('fsck')
  await server.command('bucket', 'delete', 'ocsf', '--yes')
  const ajv = new Ajv({ allErrors: true })
  addFormats.default(ajv)
  const validate = ajv.compile(ocsfSchema)
  const events = await recorded()
  for (const event of events) expect(validate(event), JSON.stringify([event, validate.errors])).toBe(true)
  const codes = new Set(events.map(({ metadata }) => metadata.event_code))
  for (const code of ['upload', 'download', 'trash', 'bucket-set', 'bucket-delete', 'fsck'])
    expect(codes).toContain(code)
  expect(validate({ ...events[0], class_uid: 6007 })).toBe(false)
  expect((await recorded('--bucket', 'ocsf')).at(-1)?.metadata.event_code).toBe('bucket-delete')
})

test('Y8 a stop stores the downloads; with `changes`, there are none', async () => {
  const { url, id } = await upload(server, 'before the stop')
  const requests = Array.from({ length: 30 }, () => ({}))
  expect(new Set(await statuses(url, requests))).toEqual(new Set([200]))
  expect(await server.stop()).toBe(0)
  await using next = await startServer({ MEDIABUCKET_AUDIT: 'changes' }, server.data)
  expect(await statuses(`${next.url}/media/${id}`, [{}, {}])).toEqual([200, 200])
  expect(await next.stop()).toBe(0)
  const { stdout } = await runCommand(['audit', '--item', id, '--csv'], { MEDIABUCKET_DATA: server.data })
  expect(stdout.split('\n').filter((line) => line.includes(',download,'))).toHaveLength(30)
})
