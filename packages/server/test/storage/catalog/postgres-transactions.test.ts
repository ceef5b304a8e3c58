import { expect, test } from 'vitest'
import { startCommitProxy } from '../../../../../test/harness/commit-proxy.ts'
import { onServer, rowsOf } from '../../../../../test/harness/postgres.ts'
import { until } from '../../../../../test/harness/until.ts'
import { service } from '../../../src/core/token-rules.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { openPostgresInspection } from '../../../src/storage/catalog/engines/postgres/postgres-database.ts'
import { freshCatalog } from './postgres-database.ts'
import { newSample, prepareSample, type Sample, sampleChanges } from './sample-writes.ts'

// Every kind of change is committed while its COMMIT is held, and then fails, is lost or is ended there. What another connection sees before the
// COMMIT is the state before the change, and what it sees after the COMMIT is all of the change: nothing follows it. A change that is
// refused has changed nothing.

/** What differs between two equal runs, or is of no change: revisions, times of the database, and numbers of sequences. The rows of `meta` that differ are its epoch and its place. */
const omitted: Readonly<Record<string, readonly string[]>> = {
  buckets: ['revision', 'changes_start', 'renewed'],
  items: ['content_id'],
  contents: ['id'],
  labels: ['id'],
  item_labels: ['label_id'],
  audit_events: ['number', 'tx', 'time'],
  changes: ['number', 'time'],
  tokens: ['number'],
  signing_keys: ['number'],
  webhooks: ['number', 'position', 'pending', 'next_attempt', 'owned_until'],
  webhook_deliveries: ['webhook', 'first_position', 'last_position'],
  intents: ['expires_at'],
}

/** What is added to the rows of a table, for columns that are left out. */
const added: Readonly<Record<string, string>> = {
  items: `|| jsonb_build_object('bytes', (SELECT encode(bytes, 'hex') FROM contents WHERE id = content_id))`,
  item_labels: `|| (SELECT to_jsonb(label) - ARRAY['id', 'items'] FROM labels AS label WHERE label.id = label_id)`,
  changes: `|| jsonb_build_object('place', row_number() OVER (PARTITION BY bucket_id ORDER BY number))`,
}

const isOfState = (table: string): boolean => table !== 'batches'

/** The rows of all tables, by table, as another connection sees them. */
async function readState(url: string): Promise<Map<string, unknown[]>> {
  const tables = await rowsOf(url, "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
  const names = tables.map(({ name }) => String(name)).filter(isOfState)
  const texts = names.map((name) => {
    const without = (omitted[name] ?? []).map((column) => `'${column}'`).join()
    const from = name === 'meta' ? "(SELECT * FROM meta WHERE key NOT IN ('epoch', 'place'))" : name
    return `SELECT '${name}' AS name, (to_jsonb(row) - ARRAY[${without}]::text[]) ${added[name] ?? ''} AS row FROM ${from} AS row`
  })
  // One statement, and so one snapshot.
  const rows = await rowsOf(url, `${texts.join(' UNION ALL ')} ORDER BY 1, 2`)
  const state = new Map<string, unknown[]>(names.map((name) => [name, []]))
  for (const { name, row } of rows) state.get(String(name))?.push(withoutNewIds(row))
  for (const list of state.values())
    list.sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))
  return state
}

/** A repeated transaction gives a new bucket the next id. The sample has two buckets. */
const withoutNewIds = (row: unknown): unknown =>
  JSON.parse(JSON.stringify(row), (key, value) =>
    (key === 'id' || key === 'bucket_id') && typeof value === 'number' && Math.abs(value) > 2 ? 'new' : value,
  )

async function expectNoFaults(url: string): Promise<void> {
  const inspection = await openPostgresInspection(url)
  try {
    expect(await inspection.bucketFaults()).toEqual([])
    expect(await inspection.orphanedContents()).toEqual([])
  } finally {
    await inspection.close()
  }
}

/** A catalog with the rows of the sample, and the proxy through which it sends its transactions. */
async function openSample(sample: Sample) {
  const url = await freshCatalog()
  const proxy = await startCommitProxy(Number(new URL(url).port))
  const through = new URL(url)
  through.port = String(proxy.port)
  const catalog = await openPostgresCatalog({ url: through.href, role: 'server', actor: service })
  await prepareSample(catalog, sample)
  return {
    url,
    proxy,
    catalog,
    async [Symbol.asyncDispose]() {
      await catalog.close()
      await proxy[Symbol.asyncDispose]()
    },
  }
}

/** The transaction that is open on another connection has executed all of its statements. */
const inTransaction = (url: string) =>
  until('an idle transaction', async () => {
    const found = await rowsOf(
      url,
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'",
    )
    return found.length === 1
  })

const diskFull = "RAISE EXCEPTION 'no space is left' USING ERRCODE = '53100'"

const outcomeOf = (made: Promise<unknown>): Promise<unknown> =>
  made.then(
    () => 'made',
    (error: { code?: string }) => error.code ?? error,
  )

/** Begins the change, and holds its COMMIT. The outcome is `made`, or the code of its fault. */
async function beginHeld({ url, proxy, catalog }: Opened, sample: Sample, make: Make) {
  const holding = proxy.holdNext()
  const outcome = outcomeOf(make(catalog, sample))
  const held = await holding
  await inTransaction(url)
  return { held, outcome }
}

type Make = (typeof sampleChanges)[string]
type Opened = Awaited<ReturnType<typeof openSample>>

/** The tables that the open transaction has written, but that of the batches. */
async function writtenTables(url: string): Promise<string[]> {
  const rows = await rowsOf(
    url,
    `SELECT relname AS name FROM pg_locks JOIN pg_class ON pg_class.oid = relation
    WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND mode = 'RowExclusiveLock' AND relkind = 'r' ORDER BY 1`,
  )
  return rows.map(({ name }) => String(name)).filter(isOfState)
}

/** Makes the change with a COMMIT that fails, and with a disk that is full for each table that it writes. Nothing is changed. */
async function expectUnchanged(opened: Opened, sample: Sample, make: Make): Promise<void> {
  const { url, catalog } = opened
  const before = await readState(url)
  const { held, outcome } = await beginHeld(opened, sample, make)
  const written = await writtenTables(url)
  held.replaceBy(`DO $$ BEGIN ${diskFull}; END $$`)
  held.release()
  expect(await outcome).toBe('storage-full')
  expect(await readState(url), 'after a COMMIT that failed').toEqual(before)
  const fails = `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${diskFull}; END $$`
  await onServer(url, fails)
  try {
    for (const name of written) {
      await onServer(
        url,
        `CREATE TRIGGER fail BEFORE INSERT OR UPDATE OR DELETE ON ${name} EXECUTE FUNCTION fail()`,
      )
      expect(await outcomeOf(make(catalog, sample)), `no space for ${name}`).toBe('storage-full')
      await onServer(url, `DROP TRIGGER fail ON ${name}`)
    }
  } finally {
    await onServer(url, 'DROP FUNCTION fail CASCADE')
  }
  expect(await readState(url), `without space for ${written}`).toEqual(before)
}

/** Makes the change, and reads the state before its COMMIT, right after it, and when the change is finished. Returns the last. */
async function expectAtomic(opened: Opened, sample: Sample, make: Make) {
  const { url } = opened
  const before = await readState(url)
  const { held, outcome } = await beginHeld(opened, sample, make)
  expect(await readState(url), 'before the COMMIT').toEqual(before)
  await held.commit()
  const committed = await readState(url)
  await expectNoFaults(url)
  held.release()
  expect(await outcome).toBe('made')
  expect(await readState(url), 'after the COMMIT').toEqual(committed)
  return committed
}

/** Faults after which a transaction is repeated, unless it was committed. */
const lossesOfConnection = ['its server process is ended', 'response lost', 'request lost'] as const

async function makeDespite(
  loss: (typeof lossesOfConnection)[number],
  opened: Opened,
  sample: Sample,
  make: Make,
): Promise<unknown> {
  const { url, proxy, catalog } = opened
  if (loss !== 'its server process is ended') {
    proxy.breakNext(loss)
    return outcomeOf(make(catalog, sample))
  }
  const { held, outcome } = await beginHeld(opened, sample, make)
  await onServer(
    url,
    `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
  )
  held.release()
  return outcome
}

/** Changes of items, whose rows have indexes of their own. */
const changesOfItems = ['addItems', 'uploads to one bucket', 'finishUpload', 'editItem', 'labelItems']
/** With `MEDIABUCKET_TEST_CHANGES=all` every kind of change; otherwise these, and every third of the others. */
const isWhole = process.env['MEDIABUCKET_TEST_CHANGES'] === 'all'
const names = Object.keys(sampleChanges).filter(
  (name, index) => isWhole || changesOfItems.includes(name) || index % 3 === 0,
)
/** The writer treats the connection of all changes but uploads alike. */
const lossy = new Set([
  'addItems',
  'uploads to one bucket',
  ...names.filter((_, index) => isWhole || index % 4 === 0),
])

test.each(names)(
  'U2 others see all of a change or nothing, and as its outcome says, however its transaction ends: %s',
  async (name) => {
    const make = sampleChanges[name] ?? (() => Promise.reject(new Error(name)))
    const sample = newSample()
    await using opened = await openSample(sample)
    await expectUnchanged(opened, sample, make)
    const made = await expectAtomic(opened, sample, make)
    for (const loss of lossy.has(name) ? lossesOfConnection : []) {
      await using other = await openSample(sample)
      expect(await makeDespite(loss, other, sample, make), loss).toBe('made')
      expect(await readState(other.url), loss).toEqual(made)
      await expectNoFaults(other.url)
    }
  },
)
