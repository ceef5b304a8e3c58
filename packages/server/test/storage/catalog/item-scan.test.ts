import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../../../../test/harness/postgres.ts'
import { random as randomOf, testSeed } from '../../../../../test/harness/random.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import {
  openConnections,
  parseDatabaseUrl,
} from '../../../src/storage/catalog/engines/postgres/connections.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { runQuery } from '../../../src/storage/catalog/engines/postgres/session.ts'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { createRun, openConnection } from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import type { Bounds } from '../../../src/storage/catalog/lists/item-scan.ts'
import { searchItems } from '../../../src/storage/catalog/lists/item-searches.ts'
import type { BucketId, ItemPlace, ItemRows, NewItem } from '../../../src/storage/catalog/records.ts'
import { newBucket } from './samples.ts'
import { type AnySelection, anySelection, expectedList, fillAnyhow, readList } from './scan-contract.ts'

const seed = testSeed()
const directory = mkdtempSync(join(tmpdir(), 'mediabucket-scan-'))
const database = createDatabase('catalog')

interface Filled {
  readonly bucketId: BucketId
  readonly items: readonly NewItem[]
}
const filled: { sqlite?: Filled; postgres?: Filled } = {}

async function fill(catalog: Catalog): Promise<Filled> {
  const bucketId = await newBucket(catalog, 'a')
  const items = await fillAnyhow(catalog, bucketId, randomOf(seed), 250)
  await catalog.close()
  return { bucketId, items }
}

beforeAll(async () => {
  filled.sqlite = await fill(await openSqliteCatalog({ directory, writer: 'direct' }))
  filled.postgres = await fill(await openPostgresCatalog({ url: (await database).url, role: 'command' }))
})
afterAll(async () => {
  rmSync(directory, { recursive: true })
  const { release } = await database
  await release()
})

type Search = (
  selection: AnySelection,
  after: ItemPlace | null,
  limit: number,
  bounds: Partial<Bounds>,
) => Promise<ItemRows>

function openSqlite(): Search {
  const db = openConnection(directory)
  onTestFinished(() => db.close())
  const run = createRun(db)
  return async (...search) => run(searchItems('sqlite', ...search))
}

async function openPostgres(): Promise<Search> {
  const connections = await openConnections(parseDatabaseUrl((await database).url), {
    readers: 1,
    writers: 1,
  })
  onTestFinished(() => connections.close())
  return (...search) => connections.read(({ run }) => runQuery(run, searchItems('postgres', ...search)))
}

test.each([
  ['sqlite', openSqlite],
  ['postgres', openPostgres],
] as const)(
  'K13, K4 any search that ends early at a bound continues where it ended, and finds what a comparison of all items does: %s',
  async (engine, open) => {
    const { bucketId, items } = filled[engine] ?? expect.unreachable()
    const search = await open()
    const random = randomOf(seed + 1)
    let early = 0
    for (let round = 0; round < 400; round += 1) {
      const selection = anySelection(random, bucketId)
      const bounds = {
        rows: 1 + random(random(2) === 0 ? 60 : 1_000),
        numbers: 1 + random(120),
        boundsFewItems: random(2) === 0,
        comparedRows: 1 + random(4),
      }
      const found = await readList(selection, async (after) => {
        const limit = 1 + random(random(2) === 0 ? 5 : 40)
        const part = await search(selection, after, limit, bounds)
        if (part.examined !== null) early += 1
        return { part, limit }
      })
      expect({ selection, bounds, found }).toEqual({
        selection,
        bounds,
        found: expectedList(selection, items),
      })
    }
    expect(early).toBeGreaterThan(100)
  },
)
