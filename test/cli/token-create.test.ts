import { afterAll, beforeAll, expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { runClient } from './client-run.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const alone = /^mbkt_[0-9a-hjkmnp-tv-z]{38}\n$/

test('A8 token create prints only the token on standard output, while a server is running', async () => {
  const { stdout, stderr } = await server.command('token', 'create', '--bucket', 'fresh')
  expect(stdout).toMatch(alone)
  expect(stderr).toMatch(/tok_\w+.*"fresh".*media:read, media:write, media:delete/)
  expect(stderr).not.toContain(stdout.trim())
  const headers = { authorization: `Bearer ${stdout.trim()}` }
  const response = await server.request('/api/media', { headers })
  expect(await response.json()).toMatchObject({ total: 0 })
})

test('A8 token create works before the first start, and names the directory that it creates', async () => {
  await using directory = await temporaryDirectory()
  const create = () =>
    runCommand(['token', 'create', '--bucket', 'b'], { MEDIABUCKET_DATA: `${directory.path}/new/data` })
  const { stdout, stderr } = await create()
  expect(stdout).toMatch(alone)
  expect(stderr).toContain(`Created ${directory.path}/new/data, because there was no data.`)
  expect((await create()).stderr).not.toContain(directory.path)
})

test('ST1 token create --service prints a token with the scopes that are named, and refuses what it cannot have', async () => {
  const create = (...args: string[]) => server.command('token', 'create', ...args)
  const { stdout, stderr } = await create(
    '--service',
    '--scope',
    'media:read,buckets:manage',
    '--name',
    'shop',
  )
  expect(stdout).toMatch(/^mbks_[0-9a-hjkmnp-tv-z]{38}\n$/)
  expect(stderr).toMatch(
    /^Created the service token svc_\w+ with the scopes buckets:manage, media:read\. It is shown only now:\n$/,
  )
  for (const [args, reason] of [
    [['--service'], /needs --scope, one or more of buckets:manage, media:read/],
    [['--service', '--scope', 'all'], /"all" is not a scope/],
    [['--service', '--scope', 'media:read', '--bucket', 'b'], /belongs to no bucket: leave out --bucket/],
    [['--service', '--scope', 'media:write', '--max-items', '3'], /A service token has no limits/],
    [['--bucket', 'b', '--scope', 'buckets:manage'], /token create --service --scope buckets:manage/],
  ] as const)
    await expect(create(...args)).rejects.toThrow(reason)
  const list = async (...args: string[]) => (await server.command('token', 'list', ...args)).stdout
  expect(await list('--service')).toMatch(/^svc_\w+ +\(service\) +shop +active +buckets:manage,media:read /)
  expect(await list()).toContain('(service)')
  expect(await list('--bucket', 'default')).not.toContain('svc_')
  expect((await server.command('token', 'revoke', 'shop')).stderr).toMatch(/svc_\w+ "shop" of the service/)
  await expect(server.command('token', 'restore', 'shop')).rejects.toThrow(
    /token create --service --scope buckets:manage,media:read/,
  )
})

test('SP1 token create --s3 says that its keys are printed again, except where it prints the token too', async () => {
  const create = (...args: string[]) => server.command('token', 'create', '--s3', ...args)
  for (const owner of [
    ['--bucket', 'keyed'],
    ['--service', '--scope', 'media:read'],
  ]) {
    const { stdout, stderr } = await create(...owner)
    expect(stdout).toMatch(/^AWS_ACCESS_KEY_ID=\w+\nAWS_SECRET_ACCESS_KEY=\S+\n$/)
    expect(stderr).toMatch(/ Its keys for the S3 protocol, which `mediabucket token keys` prints again:\n$/)
    const [, id = ''] = /_ID=(\w+)/.exec(stdout) ?? []
    expect((await server.command('token', 'keys', id)).stdout).toBe(stdout)
    expect((await create(...owner, '--json')).stderr).toMatch(/ It is shown only now:\n$/)
  }
})

test('T8 token rotate replaces a token of a bucket, as long as it is valid', async () => {
  const old = await makeToken(server, '--bucket', 'rotated', '--name', 'app', '--expires', '2d')
  const { stdout, stderr } = await server.command('token', 'rotate', 'app', '--overlap', '30m')
  expect(stdout).toMatch(alone)
  expect(stderr).toMatch(/which replaces tok_\w+ "app" of the bucket "rotated"\. .* is valid until 20\d\d-/)
  const own = async (authorization: string) =>
    Object(await (await server.request('/api/token', { headers: { authorization } })).json())
  const [before, after] = [await own(old.authorization), await own(`Bearer ${stdout.trim()}`)]
  expect(after).toMatchObject({ name: 'app', bucket: 'rotated', scopes: before.scopes })
  const hours = ({ expires_at }: { expires_at: string }) => (Date.parse(expires_at) - Date.now()) / 3_600_000
  // The new one lives as long as the old one did.
  expect([hours(before) < 0.51, hours(after) > 47 && hours(after) < 49]).toEqual([true, true])
  for (const [args, reason] of [
    [[old.id], /has been replaced before/],
    [['nobody'], /there is no token "nobody"/],
    [[old.id, '--overlap', '31d'], /--overlap takes at most 30d/],
    [[], /takes one ID or NAME/],
  ] as const)
    await expect(server.command('token', 'rotate', ...args)).rejects.toThrow(reason)
})

test('A6, A8 tokens of one bucket list the same items, and each is unique', async () => {
  const create = async () => (await server.command('token', 'create', '--bucket', 'shared')).stdout.trim()
  const [one, two] = [await create(), await create()]
  expect(one).not.toBe(two)
  await server.request('/api/media', {
    method: 'POST',
    body: 'x',
    headers: { authorization: `Bearer ${one}` },
  })
  const seen = await server.request('/api/media', { headers: { authorization: `Bearer ${two}` } })
  expect(await seen.json()).toMatchObject({ total: 1 })
})

test('A6 token create says that it created a bucket, and names one with a similar name', async () => {
  const create = async (bucket: string) =>
    (await server.command('token', 'create', '--bucket', bucket)).stderr
  expect(await create('holiday-2026')).toContain(
    'Created the bucket "holiday-2026", because there was none of this name.\n',
  )
  expect(await create('holiday-2026')).not.toContain('Created the bucket')
  expect(await create('holidya-2026')).toContain(
    'Created the bucket "holidya-2026", because there was none of this name. Did you mean "holiday-2026"? To remove the new one: mediabucket bucket delete holidya-2026\n',
  )
})

const limitArgs = [
  '--max-items',
  '3',
  '--max-bytes',
  '5MB',
  '--max-file-size',
  '1MiB',
  '--type',
  'image/*,application/pdf',
]

test('T9 token create sets limits and a note', async () => {
  const { stdout, stderr } = await server.command(
    ...['token', 'create', '--bucket', 'limited', '--scope', 'media:write', '--item-days', '9'],
    ...['--note', 'for you', ...limitArgs],
  )
  const headers = { authorization: `Bearer ${stdout.trim()}` }
  expect(await (await server.request('/api/token', { headers })).json()).toMatchObject({
    note: 'for you',
    limits: {
      ...{ max_items: 3, max_bytes: 5_000_000, max_file_size: 1_048_576, item_days: 9 },
      types: ['image/*', 'application/pdf'],
    },
  })
  expect(stderr).toContain('max_items: 3; max_bytes: 5000000')
  const listed = (await server.command('token', 'list', '--bucket', 'limited', '--json')).stdout
  expect(JSON.parse(listed)).toMatchObject({ limits: { max_items: 3 }, uploaded: { items: 0, bytes: 0 } })
})

test('G36 ask prints an upload link, and uploads with it work', async () => {
  await server.command('bucket', 'create', 'asked')
  const { stdout, stderr } = await server.command('ask', 'Photos', '--bucket', 'asked', '--max-items', '1')
  expect(stdout).toMatch(/^http:\/\/[^#]*\/upload#mbkt_\w+\n$/)
  expect(stderr).toContain('max_items: 1')
  expect(stderr).not.toContain('mbkt_')
  const headers = { authorization: `Bearer ${stdout.trim().split('#')[1]}` }
  const send = async () => (await server.request('/api/media', { method: 'POST', body: 'x', headers })).status
  const service = { url: server.url, token: headers.authorization.replace('Bearer ', '') }
  const left = async () => /^left .*$/m.exec((await runClient(service, 'whoami')).stdout)?.[0]
  expect(await left()).toMatch(/ 1 file, any number of bytes$/)
  expect([await send(), await send()]).toEqual([201, 507])
  expect(await left()).toMatch(/ 0 files, any number of bytes$/)
  expect((await server.command('token', 'list', '--bucket', 'asked')).stdout).toMatch(
    / {2}1 item, 1 B +0 items\n$/,
  )
  expect(await (await server.request('/api/token', { headers })).json()).toMatchObject({
    name: 'Photos',
    scopes: ['media:write'],
    limits: { max_items: 1 },
  })
})

test.each([
  [[], 100],
  [['--type', 'image/png'], 100],
  [['--note', 'Hello', '--max-file-size', '1MB'], 100],
  [['--type', 'image/png', '--max-items', '101'], 101],
])('G37 a link accepts 100 files unless --max-items is given: %j', async (args, files) => {
  const { stderr } = await server.command('ask', 'Photos', '--bucket', 'default', ...args)
  expect(stderr).toContain(`with the limits max_items: ${files}`)
})

test('G37 ask creates a link over HTTP with a token that manages tokens', async () => {
  const serviceOf = async (scope: string) => {
    const { authorization } = await makeToken(server, '--bucket', 'away', '--scope', scope)
    return { url: `${server.url}/`, token: authorization.replace('Bearer ', '') }
  }
  const given = ['ask', 'Photos', '--note', 'Hello', '--max-bytes', '1MB', '--label', 'album=42']
  const manager = await serviceOf('tokens:manage,media:write')
  const { stdout, stderr } = await runClient(manager, ...given)
  expect(stderr).toContain(
    'for the bucket "away" with the limits max_items: 100; max_bytes: 1000000; labels: album=42',
  )
  expect(stdout.split('#')[0]).toBe(`${server.url}/upload`)
  const headers = { authorization: `Bearer ${stdout.trim().split('#')[1]}` }
  expect(await (await server.request('/api/token', { headers })).json()).toMatchObject({
    ...{ name: 'Photos', bucket: 'away', scopes: ['media:write'], note: 'Hello' },
    limits: { max_items: 100, max_bytes: 1_000_000, labels: { album: '42' } },
  })
  expect(await runClient(await serviceOf('media:write'), 'ask', 'Photos')).toMatchObject({
    code: 3,
    stdout: '',
  })
  const other = await runClient(manager, ...given, '--bucket', 'default', '--url', server.url)
  expect(other).toMatchObject({ code: 3, stdout: '' })
})

test('G36, G37 ask over HTTP prints the base URL that the service has, and no link without the gallery', async () => {
  const askAt = async (settings: Readonly<Record<string, string>>) => {
    await using own = await startServer(settings)
    const { authorization } = await makeToken(own, '--bucket', 'away', '--scope', 'tokens:manage,media:write')
    const service = { url: `${own.url}/api/media`, token: authorization.replace('Bearer ', '') }
    const asked = await runClient(service, 'ask', 'Photos')
    return { asked, created: (await own.command('token', 'list')).stdout.includes('Photos') }
  }
  const away = await askAt({ MEDIABUCKET_BASE_URL: 'https://media.example/files' })
  expect(away).toMatchObject({ asked: { code: 0 }, created: true })
  expect(away.asked.stdout).toMatch(/^https:\/\/media\.example\/files\/upload#mbkt_\w+\n$/)
  expect(await askAt({ MEDIABUCKET_GALLERY: 'off' })).toMatchObject({
    asked: { code: 1, stdout: '', stderr: expect.stringContaining('MEDIABUCKET_GALLERY=off') },
    created: false,
  })
})

test.each([
  [['token', 'create', '--max-items', '0'], /--max-items takes a whole number from 1/],
  [['token', 'create', '--max-bytes', 'x'], /--max-bytes takes a size/],
  [['token', 'create', '--type', 'image'], /--type takes 1 to 32 types/],
  [
    ['token', 'create', '--scope', 'tokens:manage', '--max-items', '1'],
    /cannot have the scope tokens:manage/,
  ],
  [['ask'], /ask takes one TITLE/],
  [['ask', 'x', '--expires', 'y'], /--expires takes a duration/],
])('T9 limits that are not valid exit with 2: %j', async (args, message) => {
  const failed = server.command(...args, '--bucket', 'limited')
  await expect(failed).rejects.toMatchObject({ code: 2, stderr: expect.stringMatching(message) })
})

const rule = /1 to 63 lower-case letters, digits and hyphens/

test.each([
  [[], /needs --bucket NAME.*mediabucket token create --help/],
  [['--scope', 'foo'], /needs --bucket NAME.*\n"foo" is not a scope/],
  [['--bucket', 'Photos'], rule],
  [['--bucket', '../x'], rule],
  [
    ['--bucket', 'b', '--scope', 'media:all'],
    /"media:all" is not a scope\. The scopes are media:read, media:write/,
  ],
  [['--bucket', 'b', '--scope', 'media:read', '--scope', ''], /is not a scope/],
  [
    ['--bucket', 'b', '--expires', 'tomorrow'],
    /--expires takes a duration such as 12h, 30d or 52w, not "tomorrow"/,
  ],
  [['--bucket', 'b', '--expires', '-1d'], /--help/],
  [['--bucket', 'b', '--expires=99999999999999w'], /--expires takes a duration/],
  [['--bucket', 'b', '--colour', 'red'], /--colour[\s\S]*mediabucket token create --help/],
])('invalid arguments of token create exit with 2 and a remedy: %j', async (args, message) => {
  const failure = server.command('token', 'create', ...args)
  await expect(failure).rejects.toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
  await expect(failure).rejects.toMatchObject({
    stderr: expect.stringMatching(/^mediabucket: (?![\s\S]*\.[jt]s:)/),
  })
})

test('token create with invalid arguments creates no bucket', async () => {
  const { stdout } = await server.command('token', 'list', '--json')
  expect(stdout).not.toContain('"bucket":"b"')
})

test('A8 scopes are given in one option, or one by one', async () => {
  const scopesOf = async (...scopes: string[]) =>
    (await server.command('token', 'create', '--bucket', 'scoped', ...scopes)).stderr
  expect(await scopesOf('--scope', 'tokens:manage,media:read')).toContain('scopes media:read, tokens:manage.')
  expect(await scopesOf('--scope', 'media:write', '--scope', 'media:read')).toContain(
    'scopes media:read, media:write.',
  )
  expect(await scopesOf('--scope', 'media:read, media:write')).toContain('scopes media:read, media:write.')
})
