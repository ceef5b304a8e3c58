import { randomBytes } from 'node:crypto'
import { cp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ExplainedError } from '../../packages/server/src/core/faults.ts'
import { tableChecks } from '../../packages/server/src/storage/catalog/column-checks.ts'
import { cellsOf, type Damage, damagesOf, inflict, titleOf, undo } from '../harness/cells.ts'
import { runHere } from '../harness/commands.ts'
import { usePostgres } from '../harness/database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { givenSeed, random, seededRandom } from '../harness/random.ts'
import { type CatalogRows, catalogRows } from '../harness/rows.ts'
import { type SharedServer, startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { metadataOf, tusOf } from '../harness/tus.ts'
import { readReport } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'
import { readCreatedToken, readCreatedWebhook } from '../harness/wire.ts'

/** With `MEDIABUCKET_TEST_CELLS=all`, every value of every column, with a new seed; otherwise an eighteenth of them, which `TEST_SEED` chooses. */
const isWhole = process.env['MEDIABUCKET_TEST_CELLS'] === 'all'

const settings = {
  MEDIABUCKET_INLINE_SIZE: '100',
  MEDIABUCKET_AUDIT: 'all',
  MEDIABUCKET_ADDRESS_RATE: 'off',
  MEDIABUCKET_TOKEN_RATE: 'off',
  MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1',
}

const scopes = ['media:read', 'media:write', 'media:delete', 'tokens:manage', 'webhooks:manage'].flatMap(
  (scope) => ['--scope', scope],
)

const json = (method: string, body: unknown, more: Readonly<Record<string, string>> = {}): RequestInit => ({
  method,
  headers: { 'content-type': 'application/json', ...more },
  body: JSON.stringify(body),
})

/** Data with rows in every table. Returns the ids of the items, of the resumable uploads and of the webhook. */
async function fill(server: TestServer) {
  const { authorization } = await makeToken(server, '--bucket', 'default', ...scopes)
  const call = async (path: string, init: RequestInit) => {
    const response = await server.request(path, { ...init, headers: { ...init.headers, authorization } })
    if (response.status >= 300) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response
  }
  await runHere(server.data, 'bucket set', 'default', '--trash-days', '3', '--max-items', '1000')
  const ids: string[] = []
  for (const name of ['a.txt', 'folder/b.txt', 'c.txt', 'd.txt', 'e.txt']) {
    const bytes = name < 'd' ? randomBytes(200).toString('hex') : name
    ids.push((await upload(server, bytes, { name, authorization })).id)
  }
  await call('/api/media', {
    ...json('POST', 'k'),
    headers: {
      'idempotency-key': 'key',
      'mediabucket-labels': 'album="1"',
      'mediabucket-expires-at': '2100-01-01T00:00:00Z',
    },
  })
  await call(`/api/media/${ids[0]}`, json('PATCH', { alt_text: 'alt', caption: 'c', labels: { album: '2' } }))
  await call(`/api/media/${ids[3]}`, { method: 'DELETE' })
  const hook = readCreatedWebhook(
    await (await call('/api/webhooks', json('POST', { url: 'http://127.0.0.1:9/' }))).json(),
  )
  await call(`/api/webhooks/${hook.id}/test`, { method: 'POST' })
  const limited = readCreatedToken(
    await (
      await call(
        '/api/tokens',
        json('POST', { scopes: ['media:write'], note: 'n', limits: { max_items: 9, types: ['text/*'] } }),
      )
    ).json(),
  )
  await call(`/api/tokens/${limited.id}/rotate`, json('POST', { expires_at: null }))
  const tus = tusOf(server, `Bearer ${limited.token}`)
  const [unfinished, finished] = [
    await tus.createWithLength(400, {
      'upload-metadata': metadataOf({ filename: 'u.txt', filetype: 'text/plain' }),
    }),
    await tus.createWithLength(4),
  ]
  await tus.sendChunk(unfinished, 0, 'ab'.repeat(100))
  await tus.sendChunk(finished, 0, 'abcd')
  await runHere(server.data, 'bucket set', 'default', '--private', 'on')
  await runHere(server.data, 'bucket set', 'default', '--private', 'off')
  const rows = await catalogRows(server.data)
  const uploadId = unfinished.split('/').at(-1)
  const [bytes, later] =
    rows.engine === 'sqlite' ? ["X'61'", '9000000000000'] : ["'a'::bytea", "'2100-01-01'"]
  await rows.change(`INSERT INTO upload_parts (upload_id, number, size, etag) VALUES ('${uploadId}', 1, 5, 'e');
    INSERT INTO upload_pieces (upload_id, number, bytes) VALUES ('${uploadId}', 1, ${bytes});
    INSERT INTO retired (id) VALUES ('${'1'.repeat(26)}');
    INSERT INTO intents (id, expires_at) VALUES ('${'2'.repeat(26)}', ${later});
    INSERT INTO damaged (id) VALUES ('${ids[1]}')`)
  return { ids, uploads: [unfinished, finished], hook: hook.id }
}

type Filled = Awaited<ReturnType<typeof fill>>

/** Requests of every kind, with a new token. Returns those that failed because of the service. */
async function tour(server: SharedServer, { ids, uploads, hook }: Filled): Promise<string[]> {
  const { authorization } = await makeToken(server, '--bucket', 'default', ...scopes)
  const failed: string[] = []
  const call = async (path: string, init: RequestInit = {}) => {
    const response = await server.request(path, { ...init, headers: { ...init.headers, authorization } })
    const body = await response.text()
    // Bytes that an item names wrongly are reported when they are read (B9, F3).
    if (response.status >= 500 && !/"code":"bytes-missing"/.test(body))
      failed.push(`${init.method ?? 'GET'} ${path}: ${response.status} ${/"code":"[^"]*"/.exec(body)?.[0]}`)
    return body
  }
  for (const page of [1, 2]) await call(`/api/media?page=${page}`)
  for (const query of [
    ...[
      '',
      'order=newest',
      'order=taken',
      'start_name=a&order=name',
      'name=a',
      'kind=document',
      'label.album=1',
      'path=folder',
      'order=name',
      'order=name-desc&limit=1',
      'page=1',
    ],
    'sha256=0000000000000000000000000000000000000000000000000000000000000000',
  ])
    await call(`/api/items?${query}`)
  for (const path of [
    '/api/labels',
    '/api/labels?key=album',
    '/api/changes',
    '/api/bucket',
    '/api/trash',
    '/api/token',
  ])
    await call(path)
  for (const id of ids) {
    await call(`/api/media/${id}`)
    await call(`/media/${id}`)
    await call(`/api/media/${id}`, json('PATCH', { caption: 'new', labels: { new: '1' } }))
    await call(`/api/media/${id}/links`, json('POST', {}))
  }
  const { data: tokens } = JSON.parse(await call('/api/tokens?limit=500')) ?? {}
  for (const { id } of tokens ?? []) {
    await call(`/api/tokens/${encodeURIComponent(id)}/rotate`, json('POST', { expires_at: null }))
  }
  await call('/api/webhooks')
  await call(`/api/webhooks/${hook}`)
  await call(`/api/webhooks/${hook}/deliveries`)
  await call(`/api/webhooks/${hook}`, json('PATCH', { batch: 3 }))
  await call(`/api/webhooks/${hook}/test`, { method: 'POST' })
  await call('/api/webhooks', json('POST', { url: 'http://127.0.0.1:9/x' }))
  for (const path of uploads) {
    const headers = { 'tus-resumable': '1.0.0', 'upload-offset': '200' }
    await call(path, { method: 'HEAD', headers })
    await call(path, {
      method: 'PATCH',
      headers: { ...headers, 'content-type': 'application/offset+octet-stream' },
      body: 'x'.repeat(200),
    })
    await call(path, { method: 'DELETE', headers })
  }
  await call('/api/media', { method: 'POST', body: 'new' })
  await call('/api/media', {
    ...json('POST', 'k'),
    headers: { 'idempotency-key': 'key', 'mediabucket-labels': 'album="1"' },
  })
  await call('/api/media', { method: 'POST', body: randomBytes(500) })
  await call('/api/trash/restore', json('POST', { ids: [ids[3]] }))
  for (const id of ids) await call(`/api/media/${id}`, { method: 'DELETE' })
  await call('/api/trash', json('DELETE', { ids: ids.slice(0, 2) }))
  await call('/api/changes')
  await call(`/api/webhooks/${hook}`, { method: 'DELETE' })
  await call('/metrics')
  return failed
}

/** The codes that fsck finds, in this process; `ended` if it does not complete. */
async function checked(data: string, ...args: string[]): Promise<string[]> {
  try {
    const { printed } = await runHere(data, 'fsck', '--json', '--grace', '1ms', ...args)
    return readReport(JSON.parse(printed)).findings.map(({ code }) => code)
  } catch (error) {
    // It refuses such data in a sentence that names them.
    if (error instanceof ExplainedError) return ['refused']
    return [`ended: ${error instanceof Error ? error.message : error}`]
  } finally {
    // The command sets it for its process.
    process.exitCode = undefined
  }
}

/** The ids of items, and what their rows name. */
async function namedBy(rows: CatalogRows, data: string): Promise<string[]> {
  const items = await rows.read('SELECT id, content_id FROM items')
  const contents = new Set((await rows.read('SELECT id FROM contents')).map(({ id }) => String(id)))
  const blobs = new Set(
    (await readdir(join(data, 'blobs'), { recursive: true })).map((path) => path.split('/').at(-1)),
  )
  return items.flatMap(({ id, content_id: content }) => [
    `item ${id}`,
    ...(content !== null && contents.has(String(content)) ? [`content ${content}`] : []),
    ...(blobs.has(String(id)) ? [`blob ${id}`] : []),
  ])
}

const copyOf = async (data: string) => {
  const directory = await temporaryDirectory()
  await cp(data, directory.path, { recursive: true })
  return directory
}

/** Starts a server on the data, and requests everything. Returns what failed. */
async function visit(data: string, filled: Filled): Promise<string[]> {
  try {
    await using server = await startServer(settings, data)
    const failed = await tour(server, filled)
    await server.stop()
    return failed
  } catch (error) {
    return [`start: ${error instanceof Error ? error.message : error}`]
  }
}

/** Damages of different columns together, each in one group. */
function groupsOf(damages: readonly Damage[]): Damage[][] {
  const groups: Damage[][] = []
  for (const damage of damages) {
    const fitting = groups.find((group) =>
      group.every(({ table, row }) => table !== damage.table || row !== damage.row),
    )
    if (fitting) fitting.push(damage)
    else groups.push([damage])
  }
  return groups
}

describe.each(['sqlite', 'postgres'] as const)('F1, F12 with %s', (engine) => {
  test('F1 fsck checks every column of every table', async () => {
    const restore = engine === 'postgres' ? usePostgres() : () => undefined
    await using server = await startServer().finally(restore)
    const rows = await catalogRows(server.data)
    const columns = (await cellsOf(rows)).map(({ table, column }) => `${table}.${column}`)
    const checks = new Set(
      Object.entries(tableChecks).flatMap(([table, check]) =>
        Object.keys(check.columns).map((column) => `${table}.${column}`),
      ),
    )
    expect(columns.filter((column) => !checks.has(column))).toEqual([])
    expect(columns.length).toBeGreaterThan(150)
  })

  test('F1, F12 of any value that is damaged, fsck names it or nothing fails, and a repair keeps all that rows name', async () => {
    const pick = isWhole ? seededRandom() : random(givenSeed ?? 409929903)
    const restore = engine === 'postgres' ? usePostgres() : () => undefined
    await using server = await startServer(settings).finally(restore)
    const filled = await fill(server)
    await server.stop()
    const { data } = server
    const rows = await catalogRows(data)
    expect(await checked(data)).toEqual(['bytes-damaged'])

    const wrong: string[] = []
    const unnamed: Damage[] = []
    const all = (await damagesOf(rows, pick)).filter(() => isWhole || pick(18) === 0)
    for (const damage of all) {
      if (!(await inflict(rows, damage))) continue
      const codes = await checked(data)
      if (codes.some((code) => code.startsWith('ended'))) wrong.push(`${titleOf(damage)}: fsck ${codes}`)
      else if (codes.length === 1 && codes[0] === 'bytes-damaged') unnamed.push(damage)
      else if (engine === 'sqlite' && pick(3) === 0) {
        await using copy = await copyOf(data)
        const copied = await catalogRows(copy.path)
        const before = await namedBy(copied, copy.path)
        await checked(copy.path, '--repair')
        const after = new Set(await namedBy(copied, copy.path))
        const lost = before.filter((one) => !after.has(one))
        if (lost.length > 0) wrong.push(`${titleOf(damage)}: a repair removes ${lost}`)
      }
      await undo(rows, damage)
    }
    // What fsck does not name is damaged together, and one by one to find the reason of a failure.
    const groups = groupsOf(unnamed)
    // A visit changes the data, of which only those of SQLite are copied.
    for (const group of engine === 'sqlite' ? groups : groups.slice(0, 1))
      wrong.push(...(await failuresOf(rows, data, filled, group)))
    console.log(`${all.length} damages, ${unnamed.length} of them not named, in ${groups.length} starts`)
    expect(wrong).toEqual([])
  })
})

/** Which of these damages make something fail. */
async function failuresOf(
  rows: CatalogRows,
  data: string,
  filled: Filled,
  group: readonly Damage[],
): Promise<string[]> {
  const failed = await visitDamaged(rows, data, filled, group)
  if (failed.length === 0) return []
  if (group.length === 1 || rows.engine === 'postgres')
    return [`${group.map(titleOf).join('; ')}: ${failed.slice(0, 3).join('; ')}`]
  const half = Math.ceil(group.length / 2)
  const halves = [group.slice(0, half), group.slice(half)]
  return (await Promise.all(halves.map((one) => failuresOf(rows, data, filled, one)))).flat()
}

/** Requests everything from a copy of the data with these damages. */
async function visitDamaged(
  rows: CatalogRows,
  data: string,
  filled: Filled,
  damages: readonly Damage[],
): Promise<string[]> {
  if (rows.engine === 'sqlite') {
    await using copy = await copyOf(data)
    const copied = await catalogRows(copy.path)
    for (const damage of damages) await inflict(copied, damage)
    return await visit(copy.path, filled)
  }
  for (const damage of damages) await inflict(rows, damage)
  return visit(data, filled)
}
