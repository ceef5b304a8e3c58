import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { expectProblem } from '../harness/problem.ts'
import { seed } from '../harness/seed.ts'
import { basics, bin, runCommand, startServer, type TestServer } from '../harness/server.ts'
import { interruptedAt, onTerminal } from '../harness/terminal.ts'
import { makeToken } from '../harness/token.ts'
import { itemOf, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { fsck, listAll, outcome } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'

let server: TestServer
beforeAll(async () => {
  // Clients of a deleted bucket fail until their test ends.
  server = await startServer({ MEDIABUCKET_AUTH_FAILURE_RATE: 'off' })
})
afterAll(() => server[Symbol.asyncDispose]())

const run = (...args: string[]) => outcome(args, server.data)
const bucketNames = async () =>
  (await run('bucket', 'list', '--json')).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).name)
const terminal = (input: string, ...args: string[]) =>
  onTerminal([process.execPath, bin, ...args], { ...basics, MEDIABUCKET_DATA: server.data }, input)

test('Q4 bucket create creates an empty bucket with its quota, once, while the server is running', async () => {
  expect(await run('bucket', 'create', 'created', '--max-items', '1', '--max-bytes', '5MB')).toEqual({
    code: 0,
    stdout: '',
    stderr:
      'Created the bucket "created". Create a token for it: mediabucket token create --bucket created\n',
  })
  const { authorization } = await makeToken(server, '--bucket', 'created')
  const bucket = await server.request('/api/bucket', { headers: { authorization } })
  expect(await bucket.json()).toMatchObject({ name: 'created', items: 0, max_items: 1, max_bytes: 5_000_000 })
  const { stderr: note } = await run('bucket', 'create', 'plain', '--signed-pages', 'on')
  expect(note).toMatch(/^Created the bucket "plain"\..*\nThe bucket is public, so its lists have plain URLs/)
  expect(await run('bucket', 'create', 'created')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('already exists'),
  })
  for (const args of [[], ['a', 'b'], ['No'], ['x', '--max-items', '-1']])
    expect(await run('bucket', 'create', ...args)).toMatchObject({ code: 2 })
  const withoutLimit = await run('bucket', 'set', 'created')
  expect(withoutLimit.stderr).toContain('See: mediabucket bucket set --help')
  await using directory = await temporaryDirectory()
  expect(await outcome(['bucket', 'create', 'first'], join(directory.path, 'new'))).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`Created ${join(directory.path, 'new')}, because there was no data.`),
  })
})

/** Creates a bucket with tokens, items, a keyed request and uploads. */
async function fill(name: string) {
  const { authorization, token } = await makeToken(server, '--bucket', name, '--name', 'one')
  await makeToken(server, '--bucket', name, '--name', 'two')
  const items = [await upload(server, 'a', { authorization }), await upload(server, 'b', { authorization })]
  await server.request('/api/media', {
    method: 'POST',
    body: 'keyed',
    headers: { authorization, 'idempotency-key': 'k' },
  })
  const tus = tusOf({ url: server.url, token })
  items.push(
    await itemOf(
      { request: (path) => server.request(path, { headers: { authorization } }) },
      await tus.sendChunk(await tus.createWithLength(3), 0, 'tus'),
    ),
  )
  await tus.sendChunk(await tus.createWithLength(100), 0, 'unfinished')
  return { authorization, items }
}

test('Q5, A7 bucket delete deletes items, bytes, tokens and uploads of the bucket, and nothing of other buckets', async () => {
  const other = await upload(server, 'of another bucket')
  const { authorization, items } = await fill('doomed')
  const page = await server.request('/api/media', { headers: { authorization } })
  const etag = page.headers.get('etag') ?? ''
  expect(await run('bucket', 'delete', 'doomed')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('pass --yes'),
  })
  expect(await listAll(server, authorization)).toHaveLength(4)

  expect(await run('bucket', 'delete', 'doomed', '--yes')).toEqual({
    code: 0,
    stdout: '',
    stderr: 'Deleted the bucket "doomed" with 4 items.\n',
  })
  await expectProblem(
    await server.request('/api/media', { headers: { authorization } }),
    401,
    'token-unknown',
  )
  for (const { id } of items) expect((await fetch(`${server.url}/media/${id}`)).status).toBe(404)
  expect(await readdir(join(server.data, 'uploads'))).toEqual([])
  expect(await fsck(server.data)).toMatchObject({ code: 0, found: {} })
  expect(await bucketNames()).not.toContain('doomed')
  expect(await run('token', 'list', '--bucket', 'doomed')).toMatchObject({ code: 4, stdout: '' })
  expect((await fetch(`${server.url}/media/${other.id}`)).status).toBe(200)

  // A new bucket of the same name has a new id, so no entity tag of the old one matches.
  const again = await makeToken(server, '--bucket', 'doomed')
  const headers = { authorization: again.authorization, 'if-none-match': etag }
  for (let item = 0; item < 4; item += 1) await upload(server, `${item}`, again)
  const fresh = await server.request('/api/media', { headers })
  expect(fresh.status).toBe(200)
  expect(JSON.stringify(await fresh.json())).not.toContain(items[0]?.id)
})

test.each([
  ['bucket', 'delete', 'nobody', '--yes'],
  ['bucket', 'set', 'nobody', '--max-items', '1'],
  ['token', 'list', '--bucket', 'nobody'],
  ['token', 'revoke', 'laptop', '--bucket', 'nobody'],
])('%s %s with an unknown bucket exits with 4', async (...args) => {
  expect(await run(...args)).toMatchObject({
    code: 4,
    stdout: '',
    stderr: 'mediabucket: there is no bucket "nobody". See: mediabucket bucket list\n',
  })
})

test('Q5 a bucket is deleted during uploads to it: each is stored or refused, and nothing remains', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'busy')
  await seed(server, '--items', '300', '--bucket', 'busy')
  const statuses = new Set<number>()
  let running = true
  async function client(at: number): Promise<void> {
    for (let nth = 0; running; nth += 1) {
      const headers = { authorization, ...(at === 0 ? { 'idempotency-key': `${nth}` } : {}) }
      const response = await server.request('/api/media', { method: 'POST', body: 'x', headers })
      statuses.add(response.status)
      await response.arrayBuffer()
    }
  }
  const clients = Promise.all([client(0), client(1), client(2)])
  await until('some are stored', () => statuses.has(201))
  expect(await run('bucket', 'delete', 'busy', '--yes')).toMatchObject({ code: 0 })
  await until('all are refused', () => statuses.has(401))
  running = false
  await clients
  // A request in progress gets 404.
  expect([...statuses].filter((status) => status !== 404).toSorted()).toEqual([201, 401])
  expect(await fsck(server.data)).toMatchObject({ code: 0, found: {} })
})

const killAtCall = new URL('../faults/kill-at-call.ts', import.meta.url).href

test('Q5 a deletion that is killed at any step is completed by the next one', async () => {
  await fill('killed')
  let kills = 0
  for (const nth of [1, 2, 3, 5, 8, 9, 10, 11]) {
    const settings = {
      MEDIABUCKET_DATA: server.data,
      NODE_OPTIONS: `--import ${killAtCall}`,
      KILL_AT: `${nth}`,
    }
    await runCommand(['bucket', 'delete', 'killed', '--yes'], settings).catch(() => {
      kills += 1
    })
  }
  expect(kills).toBeGreaterThan(4)
  const last = await run('bucket', 'delete', 'killed', '--yes')
  expect([0, 4]).toContain(last.code)
  expect(await bucketNames()).not.toContain('killed')
  expect(await fsck(server.data, '--repair')).toMatchObject({ code: 0 })
  const { found } = await fsck(server.data)
  expect(found).toEqual({})
})

describe('on a terminal', () => {
  test('bucket delete asks for confirmation, and deletes nothing without it', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'asked')
    await upload(server, 'x', { authorization })
    const refused = await terminal('n\n', 'bucket', 'delete', 'asked')
    expect(refused.shown).toContain('Delete the bucket "asked" with 1 item (1 B) and its tokens?')
    expect([refused.code, (await bucketNames()).includes('asked')]).toEqual([1, true])
    await using directory = await temporaryDirectory()
    const tokenFile = join(directory.path, 'token')
    const service = await run('token', 'create', '--service', '--scope', 'buckets:manage,media:delete')
    await writeFile(tokenFile, service.stdout)
    const overHttp = ['--url', server.url, '--token-file', tokenFile]
    for (const connection of [[], overHttp]) {
      const command = [process.execPath, bin, 'bucket', 'delete', 'asked', ...connection]
      const env = { ...basics, MEDIABUCKET_DATA: server.data }
      const { code, shown } = await interruptedAt('[y/N]', command, env)
      expect([code, shown]).toEqual([130, expect.not.stringContaining('Abort')])
    }
    const agreed = await terminal('y\n', 'bucket', 'delete', 'asked')
    expect(agreed.shown).toContain('Deleted the bucket "asked" with 1 item.')
    expect([agreed.code, (await bucketNames()).includes('asked')]).toEqual([0, false])
  })

  test('tables have a header on a terminal only', async () => {
    expect((await terminal('', 'bucket', 'list')).shown).toMatch(
      /^BUCKET +ITEMS +MAX ITEMS +SIZE +MAX SIZE +ACCESS\r\n/,
    )
    expect((await terminal('', 'token', 'list')).shown).toMatch(/^ID +BUCKET +NAME +STATE +SCOPES/)
    expect((await run('token', 'list')).stdout).toMatch(/^tok_\w+ /)
  })
})

describe('A7 token revoke', () => {
  test('accepts the name of one active token, and prints its id', async () => {
    const first = await makeToken(server, '--bucket', 'names', '--name', 'laptop')
    expect((await run('token', 'revoke', 'laptop')).stderr).toBe(
      `Revoked the token ${first.id} "laptop" of the bucket "names".\n`,
    )
    const { authorization } = first
    expect((await server.request('/api/media', { headers: { authorization } })).status).toBe(401)
    // Revoked tokens do not make a name ambiguous.
    const second = await makeToken(server, '--bucket', 'names', '--name', 'laptop')
    expect((await run('token', 'revoke', 'laptop')).stderr).toContain(second.id)
  })

  test('refuses an ambiguous name with the ids, unless --bucket makes it unique', async () => {
    const here = await makeToken(server, '--bucket', 'here', '--name', 'same')
    const there = await makeToken(server, '--bucket', 'there', '--name', 'same')
    const refused = await run('token', 'revoke', 'same')
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('--bucket NAME') })
    for (const { id } of [here, there]) expect(refused.stderr).toContain(id)
    expect((await run('token', 'revoke', 'same', '--bucket', 'there')).stderr).toContain(there.id)
    expect((await run('token', 'revoke', here.id)).code).toBe(0)
  })

  test('advises the ids, not --bucket, for equal names in one bucket', async () => {
    const ids = [
      await makeToken(server, '--bucket', 'equal', '--name', 'twin'),
      await makeToken(server, '--bucket', 'equal', '--name', 'twin'),
    ].map(({ id }) => id)
    for (const args of [[], ['--bucket', 'equal']])
      expect(await run('token', 'revoke', 'twin', ...args)).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `mediabucket: 2 tokens have the name "twin". Pass one of the ids:\n${ids.map((id) => `  ${id} of the bucket "equal"\n`).join('')}`,
      })
  })
})

test.each([
  [['bucket', 'lst'], 'Did you mean "bucket list"?'],
  [['bukcet', 'delete', 'x'], 'Did you mean "bucket delete"?'],
  [['tokne'], 'Did you mean "token"?'],
  [['uplaod', 'a.txt'], 'Did you mean "upload"?'],
  [['token', 'list', '--buckt', 'x'], 'there is no option --buckt. Did you mean --bucket?'],
  [['fsck', '--verify'], 'there is no option --verify. Did you mean --verify-bytes?'],
  [['bucket', 'create', 'x', '--private'], '--private needs a value.\nSee: mediabucket bucket create --help'],
  [
    ['bucket', 'create', 'x', '--trash-days', '-1'],
    '--trash-days needs a value. A value that begins with - needs --trash-days=VALUE.\n',
  ],
  [['get', 'x', '-o', '-x'], '-o needs a value. A value that begins with - needs --output=VALUE.\n'],
  [['get', 'x', '-o'], '--output needs a value.\n'],
  [['fsck', '--repiar'], 'Did you mean --repair?'],
  [['-v'], 'there is no option "-v". Did you mean "--version"?'],
  [['version'], 'there is no command "version". Did you mean "--version"?'],
  [['--verison'], 'Did you mean "--version"?'],
  [['--hlep'], 'Did you mean "--help"?'],
])('a typing error in %j gets a suggestion', async (args, hint) => {
  expect(await run(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(hint) })
})
