import { cp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ExplainedError } from '../../packages/server/src/core/faults.ts'
import { tableChecks } from '../../packages/server/src/storage/catalog/checks/column-checks.ts'
import { cellsOf, type Damage, damagesOf, inflict, titleOf, undo } from '../harness/cells.ts'
import { shareDatabase, usePostgres } from '../harness/database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { type Filled, fill, filledSettings, tour } from '../harness/filled-data.ts'
import { givenSeed, random, seededRandom } from '../harness/random.ts'
import { type CatalogRows, catalogRows, keepRows } from '../harness/rows.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { fsckHere } from '../harness/upkeep.ts'

/** With `MEDIABUCKET_TEST_CELLS=all`, every value of every column, with a new seed; otherwise a few of them, which `TEST_SEED` chooses. */
const isWhole = process.env['MEDIABUCKET_TEST_CELLS'] === 'all'

const findingsOf = async (...args: Parameters<typeof fsckHere>) => (await fsckHere(...args)).report.findings

/** The codes that fsck finds; `ended` if it does not complete. */
async function checked(data: string, ...args: string[]): Promise<string[]> {
  try {
    return (await findingsOf(data, ...args)).map(({ code }) => code)
  } catch (error) {
    // It refuses such data in a sentence that names them.
    if (error instanceof ExplainedError) return ['refused']
    return [`ended: ${error instanceof Error ? error.message : error}`]
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

/** Data with rows in every table, and no server on them. */
interface Data {
  readonly path: string
  readonly rows: CatalogRows
  readonly filled: Filled
  /** Brings back the rows of a database. */
  readonly restore: () => Promise<void>
}

/** Calls the function with a copy of the data; a database is the same, and gets its rows back. */
async function withCopy<T>(
  { path, restore }: Data,
  use: (copy: Omit<Data, 'filled' | 'restore'>) => Promise<T>,
) {
  await using directory = await temporaryDirectory()
  await cp(path, directory.path, { recursive: true })
  shareDatabase(path, directory.path)
  try {
    return await use({ path: directory.path, rows: await catalogRows(directory.path) })
  } finally {
    await restore()
  }
}

/** Starts a server on the data, and requests everything. Returns what failed. */
async function visit(data: string, filled: Filled): Promise<string[]> {
  try {
    await using server = await startServer(filledSettings, data)
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

/** What a repair of data with this damage removes, although rows name it. */
const removedByRepair = (data: Data, damage: Damage): Promise<string[]> =>
  withCopy(data, async ({ path, rows }) => {
    await inflict(rows, damage)
    const before = await namedBy(rows, path)
    await checked(path, '--repair')
    const after = new Set(await namedBy(rows, path))
    return before.filter((one) => !after.has(one))
  })

/** Which of these damages make something fail. */
async function failuresOf(data: Data, group: readonly Damage[]): Promise<string[]> {
  const failed = await withCopy(data, async ({ path, rows }) => {
    for (const damage of group) await inflict(rows, damage)
    return visit(path, data.filled)
  })
  if (failed.length === 0) return []
  if (group.length === 1) return [`${group.map(titleOf)}: ${failed.slice(0, 3).join('; ')}`]
  const half = Math.ceil(group.length / 2)
  const found: string[] = []
  for (const some of [group.slice(0, half), group.slice(half)]) found.push(...(await failuresOf(data, some)))
  return found
}

const versionDamages = {
  sqlite: ['PRAGMA user_version = 0', 'PRAGMA user_version = -3'],
  postgres: ["UPDATE meta SET value = 'x' WHERE key = 'version'", "DELETE FROM meta WHERE key = 'version'"],
}

interface WrongRow {
  readonly sql: string
  /** The finding, with its code. */
  readonly named: RegExp
  /** A repair does not correct it. */
  readonly stays?: boolean
}

/** Rows that one damaged value does not make wrong: missing, second or dangling ones. Each is another row. */
function wrongRowsOf(engine: CatalogRows['engine'], { ids, uploads, objects }: Filled): WrongRow[] {
  const [first, second, third, trashed, fifth] = ids
  const [unfinished, finished] = uploads.map((path) => path.split('/').at(-1))
  const bytes = engine === 'sqlite' ? "X'61'" : "'a'::bytea"
  const sums = engine === 'sqlite' ? ['counts', "X'61'"] : ['sums', "'{0}'"]
  // PostgreSQL checks it.
  const least = engine === 'sqlite' ? -5 : 0
  const later = engine === 'sqlite' ? '9000000000000' : "'2100-01-01'"
  const nobody = '3'.repeat(26)
  const insert = (table: string, columns: string, values: string, key: string): WrongRow => ({
    sql: `INSERT INTO ${table} (${columns}) VALUES (${values})`,
    named: new RegExp(`^row-dangling ${table} ${key}`),
  })
  const meta = (key: string, value: string | null): WrongRow => ({
    sql: `DELETE FROM meta WHERE key = '${key}'${value === null ? '' : `; INSERT INTO meta (key, value) VALUES ('${key}', '${value}')`}`,
    named: new RegExp(`^meta-wrong ${key} is ${value === null ? 'missing' : `"${value}"`}`),
  })
  const contentOf = (id = '') => `(SELECT content_id FROM items WHERE id = '${id}')`
  return [
    meta('epoch', null),
    meta('place', 'x'),
    meta('audit', 'x'),
    meta('last-backup', '1'),
    ...(engine === 'sqlite' ? [meta('last_bucket_id', 'x'), meta('audit_ahead', 'x')] : []),
    insert('item_names', 'bucket_id, slot, names', "999, 0, ''", '999 0'),
    insert('labels', 'bucket_id, key, value, items', "999, 'k', 'v', 1", '\\d+'),
    insert('item_labels', 'bucket_id, label_id, kind, created_at, seq', '999, 1, 0, 1, 0', '999 1'),
    insert('ranks', `bucket_id, level, slot, ${sums[0]}`, `999, 1, 0, ${sums[1]}`, '999 1 0'),
    insert('expired_counts', 'bucket_id, level, slot, items', '999, 1, 0, 1', '999 1 0'),
    insert('changes', 'bucket_id, number, kind, item_id, time', `999, 1, 1, '${nobody}', 1`, '999 1'),
    insert(
      'webhook_deliveries',
      'webhook, number, message_id, type, time, duration, changes, response, manual',
      "999, 1, 'm', 't', 1, 1, 0, '', 0",
      '999 1',
    ),
    insert('upload_parts', 'upload_id, number, size, etag', `'${nobody}', 1, 5, 'e'`, nobody),
    insert('upload_pieces', 'upload_id, number, bytes', `'${nobody}', 1, ${bytes}`, nobody),
    insert('damaged', 'id', `'${nobody}'`, nobody),
    insert(
      'object_keys',
      'bucket_id, key, item_id, item_size, etag, public, headers, modified_at',
      `1, ${bytes}, '${nobody}', 5, '${'a'.repeat(32)}', 0, '{"metadata":{}}', 1`,
      nobody,
    ),
    insert(
      'object_parts',
      'upload_id, number, item_id, size, etag, stored_at',
      `'${nobody}', 1, '${nobody}', 5, '${'a'.repeat(32)}', 1`,
      nobody,
    ),
    insert('keyed_counts', 'bucket_id, slot, items', '999, 0, 1', '999 0'),
    {
      sql: `UPDATE object_uploads SET bucket_id = 999 WHERE id = '${objects.completed.id}'`,
      named: new RegExp(`^row-wrong object_uploads ${objects.completed.id}: bucket_id`),
      stays: true,
    },
    {
      sql: 'UPDATE keyed_counts SET items = 7 WHERE bucket_id = 1 AND slot = 0',
      named: /^bucket-keys-wrong default/,
    },
    {
      sql: `INSERT INTO tombstones (id) SELECT item_id FROM object_parts WHERE upload_id = '${objects.unfinished.id}'`,
      named: new RegExp(`^tombstone-wrong (?!${first})`),
    },
    {
      sql: `INSERT INTO contents (id, ${engine === 'sqlite' ? '' : 'bucket_id, '}bytes)
        VALUES (999, ${engine === 'sqlite' ? '' : '1, '}${bytes})`,
      named: /^content-orphaned content 999/,
    },
    {
      sql: `DELETE FROM contents WHERE id = ${contentOf(second)}`,
      named: new RegExp(`^bytes-missing ${second}`),
      stays: true,
    },
    {
      sql: `UPDATE items SET content_id = ${contentOf(fifth)} WHERE size = 3 AND bucket_id > 0`,
      named: /^row-wrong items content_id \d+ of several items/,
      stays: true,
    },
    {
      sql: `UPDATE items SET bucket_id = -bucket_id, seq = seq + 50, deleted_at = 1, expires_at = 9000000000000,
        home_seq = (SELECT home_seq FROM items WHERE id = '${trashed}') WHERE id = '${third}'`,
      named: /^row-wrong items home_seq -1 \d+ of several items/,
      stays: true,
    },
    {
      sql: `UPDATE items SET bucket_id = 999 WHERE id = '${fifth}'`,
      named: /^row-wrong items 999 \d+: bucket_id/,
      stays: true,
    },
    {
      sql: 'UPDATE tokens SET bucket_id = 999 WHERE replaced_by IS NOT NULL',
      named: /^row-wrong tokens tok_\w+: bucket_id/,
      stays: true,
    },
    {
      sql: "UPDATE tokens SET bucket_id = NULL WHERE id LIKE 'tok%' AND replaced_by IS NOT NULL",
      named: /^row-wrong tokens tok_\w+: bucket_id/,
      stays: true,
    },
    {
      sql: "UPDATE tokens SET bucket_id = 1 WHERE id LIKE 'svc%'",
      named: /^row-wrong tokens svc_\w+: bucket_id/,
      stays: true,
    },
    {
      sql: "UPDATE tokens SET scopes = 'media:read buckets:manage' WHERE id LIKE 'tok%'",
      named: /^row-wrong tokens tok_\w+: scopes/,
      stays: true,
    },
    {
      sql: "UPDATE keyed_requests SET bucket_id = 999 WHERE key = 'of-a-service'",
      named: /^row-wrong keyed_requests \w+ 999 of-a-service: (?:\w+, )*bucket_id/,
      stays: true,
    },
    {
      sql: "UPDATE keyed_requests SET token_id = 'tok_zzzzzzzzzzzz'",
      named: /^row-wrong keyed_requests tok_zzzzzzzzzzzz \d+ key: token_id/,
      stays: true,
    },
    { sql: 'UPDATE webhooks SET bucket_id = 999', named: /^row-wrong webhooks \d+: bucket_id/, stays: true },
    {
      sql: `UPDATE uploads SET bucket_id = 999 WHERE id = '${unfinished}'`,
      named: new RegExp(`^row-wrong uploads ${unfinished}: bucket_id`),
      stays: true,
    },
    {
      sql: `UPDATE uploads SET finished = 0 WHERE id = '${finished}'`,
      named: new RegExp(`^upload-wrong ${finished}`),
    },
    {
      sql: `INSERT INTO tombstones (id) VALUES ('${first}')`,
      named: new RegExp(`^tombstone-wrong ${first}`),
    },
    { sql: "INSERT INTO tombstones (id) VALUES ('../x')", named: /^id-malformed deletion "..\/x"/ },
    {
      sql: `INSERT INTO intents (id, expires_at) VALUES ('../y', ${later})`,
      named: /^id-malformed intent "..\/y"/,
    },
    // Lists and totals subtract the expired items that are counted.
    {
      sql: 'UPDATE buckets SET counted_items = 70, counted_bytes = 700 WHERE id = 1',
      named: /^bucket-expiry-wrong default: 70 expired items/,
    },
    {
      sql: `UPDATE buckets SET total = ${least}, bytes = 7, reserved_items = 9 WHERE id = 1`,
      named: new RegExp(`^bucket-total-wrong default: ${least} is stored`),
    },
    {
      sql: 'UPDATE buckets SET total = 9223372036854775807, bytes = 9007199254740993 WHERE id = -1',
      named: /^bucket-total-wrong 1\/trash: 9223372036854775807 is stored/,
    },
    {
      sql: 'UPDATE token_limits SET reserved_items = 4',
      named: /^bucket-reserved-wrong default: 4 items/,
    },
  ]
}

describe.each(['sqlite', 'postgres'] as const)('F1, F12 with %s', (engine) => {
  let server: TestServer
  let data: Data
  beforeAll(async () => {
    const restore = engine === 'postgres' ? usePostgres() : () => undefined
    server = await startServer(filledSettings).finally(restore)
    const filled = await fill(server)
    await server.stop()
    const rows = await catalogRows(server.data)
    const keep = engine === 'postgres' ? await keepRows(rows) : async () => undefined
    data = { path: server.data, rows, filled, restore: keep }
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test('F1 fsck checks every column of every table', async () => {
    const columns = (await cellsOf(data.rows)).map(({ table, column }) => `${table}.${column}`)
    const checks = new Set(
      Object.entries(tableChecks).flatMap(([table, check]) =>
        Object.keys(check.columns).map((column) => `${table}.${column}`),
      ),
    )
    expect(columns.filter((column) => !checks.has(column))).toEqual([])
    expect(columns.length).toBeGreaterThan(150)
  })

  test('F1, F12 rows that are missing, duplicate or dangling, and counters below 0, are named, and a repair corrects those that others give', async () => {
    await withCopy(data, async ({ path, rows }) => {
      const wrongRows = wrongRowsOf(rows.engine, data.filled)
      for (const { sql } of wrongRows) await rows.change(sql)
      const found = async (...args: string[]) => {
        const findings = await findingsOf(path, ...args)
        const all = findings.flatMap(({ code, subjects }) => subjects.map((subject) => `${code} ${subject}`))
        return wrongRows.filter(({ named }) => all.some((one) => named.test(one))).map(({ named }) => named)
      }
      const all = wrongRows.map(({ named }) => named)
      const lasting = wrongRows.filter(({ stays }) => stays).map(({ named }) => named)
      expect(await found()).toEqual(all)
      const before = await namedBy(rows, path)
      expect(await found('--repair')).toEqual(all)
      expect(await found()).toEqual(lasting)
      const remaining = (await findingsOf(path)).map(({ code }) => code)
      expect(remaining).toEqual(['row-wrong', 'bytes-missing', 'size-wrong'])
      const after = new Set(await namedBy(rows, path))
      expect(before.filter((one) => !after.has(one))).toEqual([])
      const counters = await rows.read('SELECT total, counted_items, counted_bytes FROM buckets WHERE id = 1')
      expect(
        counters.map(({ total, ...counted }) => [Number(total), Object.values(counted).map(Number)]),
      ).toEqual([[8, [0, 0]]])
    })
  })

  test('F1, U15 a path that no upload can have is named', async () => {
    await withCopy(data, async ({ path, rows }) => {
      const paths = [
        '/../x',
        'a/../../x',
        'a//b',
        './a',
        'a/',
        'a\\b',
        ' a',
        'a\u202eb',
        '\u{10FFFF}',
        'x'.repeat(256),
      ]
      const [row] = await rows.read('SELECT seq FROM items WHERE bucket_id = 1 ORDER BY seq LIMIT 1')
      const seq = Number(row?.['seq'])
      const wrongPaths = async (value: string) => {
        await rows.change(`UPDATE items SET path = '${value}' WHERE bucket_id = 1 AND seq = ${seq}`)
        return (await findingsOf(path)).flatMap(({ code, subjects }) =>
          subjects.filter((subject) => code === 'row-wrong' && subject === `items 1 ${seq}: path`),
        )
      }
      for (const value of paths)
        expect([value, await wrongPaths(value)]).toEqual([value, [`items 1 ${seq}: path`]])
      for (const value of ['a', 'album/day 1/é.jpg', '..a/b..'])
        expect([value, await wrongPaths(value)]).toEqual([value, []])
    })
  })

  test('F1, O8 a damaged identity is named; data with a damaged version are refused by name, with what to do', async () => {
    await withCopy(data, async ({ path, rows }) => {
      await rows.change("UPDATE meta SET value = 'x' WHERE key = 'blobs'")
      expect(await checked(path)).toEqual(['meta-wrong', 'bytes-damaged'])
      // A start finds that the directory has the bytes of the items.
      await using server = await startServer(filledSettings, path)
      await server.stop()
      expect(await checked(path)).toEqual(['bytes-damaged'])
      for (const sql of versionDamages[engine]) {
        await rows.change(sql)
        await expect(findingsOf(path)).rejects.toThrow(/is damaged: .*version.*restore a backup/)
      }
    })
  })

  test('F1, F12 of any value that is damaged, fsck names it or nothing fails, and a repair keeps all that rows name', async () => {
    const pick = isWhole ? seededRandom() : random(givenSeed ?? 409929903)
    const { path, rows } = data
    expect(await checked(path)).toEqual(['bytes-damaged'])

    // A check of a database takes several times as long.
    const share = engine === 'sqlite' ? 18 : 54
    const wrong: string[] = []
    const unnamed: Damage[] = []
    const all = (await damagesOf(rows, pick)).filter(() => isWhole || pick(share) === 0)
    for (const damage of all) {
      if (!(await inflict(rows, damage))) continue
      const codes = await checked(path)
      await undo(rows, damage)
      if (codes.some((code) => code.startsWith('ended'))) wrong.push(`${titleOf(damage)}: fsck ${codes}`)
      else if (codes.length === 1 && codes[0] === 'bytes-damaged') unnamed.push(damage)
      else if (pick(3) === 0) {
        const lost = await removedByRepair(data, damage)
        if (lost.length > 0) wrong.push(`${titleOf(damage)}: a repair removes ${lost}`)
      }
    }
    // What fsck does not name is damaged together, and in halves to find the reason of a failure.
    const groups = groupsOf(unnamed)
    const visited = isWhole || engine === 'sqlite' ? groups : groups.slice(0, 1)
    for (const group of visited) wrong.push(...(await failuresOf(data, group)))
    console.log(
      `${all.length} damages, ${unnamed.length} of them not named, visited in ${visited.length} of ${groups.length} starts`,
    )
    expect(wrong).toEqual([])
  })
})
