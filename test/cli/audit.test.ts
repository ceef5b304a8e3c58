import { spawn } from 'node:child_process'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { databaseSettings } from '../harness/database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { basics, bin, type LogLine, runCommand, startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { atWorkerEnd } from '../harness/worker-end.ts'

interface Event {
  readonly class_uid: number
  readonly activity_name: string
  readonly metadata: { readonly event_code: string; readonly correlation_uid?: string; readonly uid: string }
  readonly actor: { readonly user?: Readonly<Record<string, unknown>>; readonly app_name?: string }
  readonly src_endpoint: { readonly ip?: string }
  readonly unmapped: { readonly detail?: unknown }
  readonly file?: { readonly uid?: string; readonly name: string; readonly parent_folder: string }
  readonly entity?: { readonly uid?: string; readonly name?: string }
}

const settings = {
  MEDIABUCKET_AUDIT: 'changes',
  MEDIABUCKET_ADDRESS_RATE: 'off',
  MEDIABUCKET_TRUSTED_PROXIES: '127.0.0.1',
}
let server: TestServer

beforeAll(async () => {
  server = await startServer(settings)
  atWorkerEnd(() => server[Symbol.asyncDispose]())
})

const audit = async (...options: string[]): Promise<Event[]> =>
  (await server.command('audit', '--json', ...options)).stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

/** A new bucket with its token. */
async function newBucket(name: string) {
  await server.command('bucket', 'create', name, '--trash-days', '3')
  const scopes = ['media:read', 'media:write', 'media:delete', 'tokens:manage'].flatMap((scope) => [
    '--scope',
    scope,
  ])
  const { stdout } = await server.command('token', 'create', '--bucket', name, ...scopes)
  const token = stdout.trim()
  async function call(
    method: string,
    path: string,
    body?: string | FormData,
    headers: Record<string, string> = {},
  ) {
    const authorization = `Bearer ${token}`
    const response = await fetch(new URL(path, server.url), {
      method,
      body: body ?? null,
      headers: { authorization, ...headers },
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const upload = async (text: string, headers: Record<string, string> = {}): Promise<string> =>
    JSON.parse((await call('POST', '/api/media', text, headers)).text).id
  return { token, call, upload }
}

const json = { 'content-type': 'application/json' }

test('Y1, Y2 every kind of change has one event, with the id of the request in the log', async () => {
  const { token, call, upload } = await newBucket('kinds')
  const named = { 'content-disposition': 'attachment; filename="=1+1.txt"', 'x-forwarded-for': '2001:db8::7' }
  const raw = await upload('raw', named)
  const keyed = { 'idempotency-key': 'k' }
  const once = await upload('once', keyed)
  expect(await upload('once', keyed)).toBe(once)
  const form = new FormData()
  form.set('one', new Blob(['one']), 'one.txt')
  form.set('two', new Blob(['two']), 'two.txt')
  const { data } = JSON.parse((await call('POST', '/api/media', form)).text)
  const tus = {
    'tus-resumable': '1.0.0',
    'upload-length': '3',
    'content-type': 'application/offset+octet-stream',
  }
  const created = await call('POST', '/api/uploads', 'tus', tus)
  const resumable = created.headers.get('content-location')?.split('/').at(-1) ?? ''
  await call('PATCH', `/api/media/${raw}`, '{"caption":"a secret"}', json)
  await call('PATCH', `/api/media/${raw}`, '{"caption":"a secret"}', json)
  await call('POST', `/api/media/${raw}/links`, '{"expires_in":60}', json)
  await call('POST', '/api/links', JSON.stringify({ ids: [raw, once], expires_in: 60 }), json)
  await call('POST', `/api/media/${raw}/links`, '{}', json)
  await call('DELETE', `/api/media/${raw}`)
  await call('POST', '/api/trash/restore', JSON.stringify({ ids: [raw] }), json)
  await call('DELETE', '/api/media', JSON.stringify({ ids: [raw, once] }), json)
  await call('DELETE', '/api/trash', JSON.stringify({ ids: [raw] }), json)
  await call('DELETE', '/api/trash', JSON.stringify({ all: true }), json)
  const granted = JSON.parse(
    (await call('POST', '/api/tokens', '{"name":"n","scopes":["media:read"]}', json)).text,
  )
  const next = JSON.parse(
    (await call('POST', `/api/tokens/${granted.id}/rotate`, '{"expires_at":null}', json)).text,
  )
  await call('DELETE', `/api/tokens/${granted.id}`)
  await call('DELETE', `/api/tokens/${granted.id}`)

  const events = await audit('--bucket', 'kinds')
  const subjects = events.map(({ metadata, file, entity }) => [
    metadata.event_code,
    file?.uid ?? file?.name ?? entity?.uid ?? entity?.name,
  ])
  const ofForm = data.map(({ id }: { id: string }) => ['upload', id])
  expect(subjects).toEqual([
    ['bucket-create', 'kinds'],
    ['token-create', expect.stringMatching(/^tok_/)],
    ['upload', raw],
    ['upload', once],
    ...ofForm,
    ['upload', resumable],
    ['edit', raw],
    ['link', raw],
    ['link', '2 items'],
    ['trash', raw],
    ['restore', raw],
    ['trash', raw],
    ['trash', once],
    ['purge', raw],
    ['purge', once],
    ['token-create', granted.id],
    ['token-rotate', next.id],
    ['token-revoke', granted.id],
  ])
  const linked = events.filter(({ file }) => file?.name === '2 items')
  expect(linked.map(({ unmapped }) => unmapped.detail)).toEqual([
    expect.objectContaining({ items: [raw, once], download: false }),
  ])
  expect(await audit('--item', once, '--action', 'link')).toEqual(linked)
  expect((await audit('--item', raw)).filter(({ metadata }) => metadata.event_code === 'link')).toHaveLength(
    2,
  )
  const [, issued, first] = events
  expect(first?.src_endpoint.ip).toBe('2001:db8::7')
  expect(first?.file).toMatchObject({ name: '=1+1.txt', parent_folder: 'kinds' })
  expect(first?.actor.user?.['uid']).toBe(issued?.entity?.uid)
  const requests = () =>
    server
      .log()
      .filter((line): line is LogLine & { requestId: string } => typeof line['requestId'] === 'string')
  await until('the log of the requests', () => requests().some(({ method }) => method === 'DELETE'))
  const logged = new Set(requests().map(({ requestId }) => requestId))
  for (const { metadata, actor } of events.slice(2)) {
    expect(logged).toContain(metadata.correlation_uid)
    expect(actor.user).toMatchObject({ type: 'System' })
  }
  const { stdout } = await server.command('audit', '--bucket', 'kinds')
  const { stdout: values } = await server.command('audit', '--bucket', 'kinds', '--csv')
  for (const output of [stdout, values, JSON.stringify(events)]) {
    expect(output).not.toContain('a secret')
    expect(output).not.toContain('mbkt_')
    expect(output).not.toContain('signature')
  }
  expect(token).toMatch(/^mbkt_/)
  expect(values).toContain(`,upload,kinds,${raw},'=1+1.txt,3,`)
  expect(stdout.split('\n')[2]).toMatch(
    new RegExp(`Z {2}upload .* kinds .* ${raw} .* tok_\\w+ .* =1\\+1\\.txt 3 B$`),
  )
})

test('Y5 events are selected by options; mistakes are explained', async () => {
  const { upload } = await newBucket('selected')
  const [one, two] = [await upload('1'), await upload('2')]
  const uids = (events: readonly Event[]) => events.map(({ file }) => file?.uid)
  const uploads = await audit('--bucket', 'selected', '--action', 'upload')
  expect(uids(uploads)).toEqual([one, two])
  expect(uids(await audit('--item', `${server.url}/media/${two}.txt`))).toEqual([two])
  const tokenId = String(uploads[0]?.actor.user?.['uid'])
  expect(uids(await audit('--token', tokenId, '--since', '1h'))).toEqual([one, two])
  expect(await audit('--token', tokenId, '--until', '2020-01-01')).toEqual([])
  for (const mistake of [
    ['--item', 'x y'],
    ['--item', 'x'],
    ['--since', 'yesterday'],
    ['--action', 'dance'],
    ['--json', '--csv'],
  ])
    await expect(server.command('audit', ...mistake), mistake.join(' ')).rejects.toMatchObject({ code: 2 })
  const withSecret = server.command('audit', '--item', 'http://me:secret@h.example/media/x')
  await expect(withSecret).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/must not contain a user name or password\n$/),
  })
  await expect(server.command('audit', '--bucket', 'none')).rejects.toMatchObject({ code: 4 })
})

test('Y5 --follow prints events as they are recorded, until the reader closes the output', async () => {
  const { upload } = await newBucket('followed')
  const before = await upload('before')
  const env = { ...basics, ...(await databaseSettings(server.data)), MEDIABUCKET_DATA: server.data }
  const options = [
    'audit',
    '--follow',
    '--since',
    '1h',
    '--action',
    'upload',
    '--bucket',
    'followed',
    '--json',
  ]
  const child = spawn(process.execPath, [bin, ...options], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = new Promise<number | null>((done) => child.once('exit', done))
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  const ids = () =>
    output
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line).file.uid)
  await until('the earlier event', () => ids().length === 1)
  const later = [await upload('1'), await upload('2')]
  await until('the later events', () => ids().length === 3)
  expect(ids()).toEqual([before, ...later])
  child.stdout.destroy()
  await upload('3')
  expect(await ended).toBe(0)
})

test('Y1, Y7 a restored backup has the audit log and the restore; a migrated catalog has it too, and the migration', async () => {
  const { upload } = await newBucket('restored')
  const id = await upload('text')
  await using directory = await temporaryDirectory()
  const [copy, data] = [join(directory.path, 'copy'), join(directory.path, 'data')]
  await server.command('backup', copy)
  await runCommand(['restore', copy], { MEDIABUCKET_DATA: data, MEDIABUCKET_AUDIT: 'changes' })
  const { stdout } = await runCommand(['audit', '--item', id, '--csv'], { MEDIABUCKET_DATA: data })
  expect(stdout).toContain(`,upload,restored,${id},`)

  const moved = join(directory.path, 'moved')
  const eventsOf = async (place: string, ...options: string[]) => {
    const { stdout: lines } = await runCommand(['audit', '--csv', ...options], { MEDIABUCKET_DATA: place })
    return lines.split('\n').slice(1, -1)
  }
  const by = `operator,,${userInfo().username},,`
  const restored = await eventsOf(data)
  expect(restored.at(-1)).toMatch(new RegExp(`,backup-restore,,,,,"{""items"":\\d+,""faults"":0}",${by}$`))
  await runCommand(['migrate', '--to', moved], { MEDIABUCKET_DATA: data, MEDIABUCKET_AUDIT: 'all' })
  const events = await eventsOf(moved)
  expect(events.slice(0, -1)).toEqual(restored)
  expect(events.at(-1)).toMatch(/,migrate,,,,,"{""items"":\d+,""faults"":0}",operator,/)
})

test('Y3 a command records its changes if the service does, whatever its own environment is', async () => {
  await using server = await startServer({ MEDIABUCKET_AUDIT: 'changes' })
  const actions = async () =>
    (await server.command('audit', '--csv')).stdout
      .split('\n')
      .flatMap((line) => /bucket-create.*/.exec(line)?.[0] ?? []).length
  const before = await actions()
  const own = { ...(await databaseSettings(server.data)), MEDIABUCKET_DATA: server.data }
  await runCommand(['bucket', 'create', 'recorded'], own)
  expect(await actions()).toBe(before + 1)
  await server.stop()
  await using next = await startServer({}, server.data)
  await next.command('bucket', 'create', 'unrecorded')
  expect(await actions()).toBe(before + 1)
})
