import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { seededRandom } from '../../../../../test/harness/random.ts'
import type { ItemId, UploadId } from '../../../src/core/ids.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { CatalogInspection } from '../../../src/storage/catalog/checks/inspection.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { openPostgresInspection } from '../../../src/storage/catalog/engines/postgres/postgres-database.ts'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { openSqliteInspection } from '../../../src/storage/catalog/engines/sqlite/sqlite-inspection.ts'
import type { BucketId, TokenId } from '../../../src/storage/catalog/records.ts'
import { freshCatalog } from './postgres-database.ts'
import {
  inBlobStore,
  newItem,
  newKey,
  newMultipart,
  newPart,
  newToken,
  newUpload,
  withBytes,
} from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

const hour = 3_600_000
const day = 24 * hour
const keys = ['a', 'b', 'c/d', 'c/e'] as const

interface Engine {
  readonly catalog: Catalog
  readonly inspection: CatalogInspection
}

/** A change of a bucket, or a read. */
type Work = (catalog: Catalog, bucketId: BucketId) => Promise<unknown>

/** Ids, revisions and numbers of contents differ between the engines. */
const differing: ReadonlySet<string> = new Set(['revision', 'contentId', 'bucketId'])
const comparable = (value: unknown): string =>
  JSON.stringify(value ?? null, (name, one: unknown) => (differing.has(name) ? undefined : one))

/** One bucket in both engines, and what the changes so far have used. */
class TwoBuckets {
  readonly name: string
  readonly random: (limit: number) => number
  readonly limited: TokenId
  readonly items: ItemId[] = [newItem().id]
  readonly uploads: UploadId[] = []
  readonly multiparts: {
    readonly id: UploadId
    readonly key: string
    readonly parts: Map<number, ItemId>
  }[] = []
  readonly #engines: readonly Engine[]
  /** For the message of a failure. */
  readonly #log: string[] = []

  constructor(engines: readonly Engine[], name: string, random: (limit: number) => number) {
    this.#engines = engines
    this.name = name
    this.limited = `limited ${name}` as TokenId
    this.random = random
  }

  async create(): Promise<void> {
    const limits = { maxItems: 40, maxBytes: 60_000, maxFileSize: null, types: null, itemDays: null }
    for (const { catalog } of this.#engines) {
      await catalog.createBucket(this.name, { trashDays: 2, maxItems: 30, maxBytes: 40_000 }, Date.now())
      await catalog.addToken(newToken(this.limited, { bucket: this.name, limits }))
    }
  }

  /** Does the work in both engines, which must have equal results or faults. Returns the result of the first. */
  async both<T>(what: string, work: (catalog: Catalog, bucketId: BucketId) => Promise<T>): Promise<T | null> {
    this.#log.push(what)
    const results: { readonly value: T | null; readonly text: string }[] = []
    for (const { catalog } of this.#engines) {
      const bucket = await catalog.findBucketNamed(this.name)
      results.push(
        await work(catalog, bucket?.id ?? expect.unreachable('the bucket is deleted')).then(
          (value) => ({ value, text: comparable(value) }),
          (error: { readonly code?: string }) => {
            if (error.code === undefined) throw new Error(this.#log.join('\n'), { cause: error })
            return { value: null, text: error.code }
          },
        ),
      )
    }
    const [first, second] = results
    expect(second?.text, this.#log.join('\n')).toBe(first?.text)
    return first?.value ?? null
  }

  /** F1: all counters match the rows. */
  async check(): Promise<void> {
    for (const { inspection } of this.#engines)
      expect(await inspection.bucketFaults(), this.#log.join('\n')).toEqual([])
  }

  note(what: string): void {
    this.#log.push(what)
  }

  pick<T>(from: readonly T[]): T {
    return from[this.random(from.length)] ?? expect.unreachable('nothing to choose from')
  }

  some(): ItemId[] {
    return [...new Set(Array.from({ length: 1 + this.random(4) }, () => this.pick(this.items)))]
  }

  /** Some expire, have labels or a path. */
  newItem() {
    const { random } = this
    const item = newItem({
      size: 100 * (1 + random(20)),
      createdAt: Date.now(),
      ...(random(2) && { expiresAt: Date.now() + (random(6) - 1) * 12 * hour }),
      ...(random(2) && { labels: { a: `${random(2)}`, [`k${random(2)}`]: 'x' } }),
      ...(random(3) === 0 && { path: this.pick(keys), filename: 'x' }),
      ...(random(2) && { contentType: 'text/plain', extension: 'txt' }),
    })
    this.items.push(item.id)
    return item
  }

  limitedOrNot(): TokenId | null {
    return this.random(2) ? this.limited : null
  }
}

type Step = (of: TwoBuckets) => Promise<unknown>

const sorted = <T extends { readonly ids: readonly string[] }>(result: T) => ({
  ...result,
  ids: result.ids.toSorted(),
})

const itemSteps: Readonly<Record<string, Step>> = {
  add(of) {
    const items = Array.from({ length: 1 + of.random(4) }, () => of.newItem())
    const [isSmall, limits] = [of.random(2) === 0, of.limitedOrNot()]
    return of.both(`add ${JSON.stringify(items)} ${limits}`, async (catalog, bucketId) => {
      const added = isSmall ? items.map(withBytes) : inBlobStore(items)
      await catalog.addLimitedItems(bucketId, added, limits)
    })
  },
  remove(of) {
    const ids = of.some()
    return of.both(`remove ${ids}`, (catalog, bucketId) => catalog.removeItems(bucketId, ids))
  },
  restore(of) {
    const ids = of.some()
    return of.both(`restore ${ids}`, (catalog, bucketId) => catalog.restoreItems(bucketId, ids))
  },
  purge(of) {
    const ids = of.some()
    return of.both(`purge ${ids}`, (catalog, bucketId) => catalog.purgeItems(bucketId, ids))
  },
  expire: (of) =>
    of.both('expire', async (catalog, bucketId) => {
      const { tombstones, ...rest } = await catalog.expireItems(bucketId)
      return { ...sorted(rest), tombstones: tombstones.toSorted() }
    }),
  label(of) {
    const ids = of.some()
    return of.both(`label ${ids}`, async (catalog, bucketId) =>
      sorted(await catalog.labelItems(bucketId, ids, { a: `${ids.length % 2}`, z: null })),
    )
  },
  async moveClock(of) {
    const hours = (of.random(9) - 2) * 6
    of.note(`move the clock by ${hours} hours`)
    vi.setSystemTime(Date.now() + hours * hour)
  },
  setTrash(of) {
    const trashDays = of.random(3)
    return of.both(`trash ${trashDays}`, (catalog) => catalog.setBucket(of.name, { trashDays }))
  },
}

const keySteps: Readonly<Record<string, Step>> = {
  put(of) {
    const [key, item] = [of.pick(keys), of.newItem()]
    return of.both(`put ${key} ${JSON.stringify(item)}`, async (catalog, bucketId) => {
      const { refused } = await catalog.putKey(bucketId, newKey(key, item), { mayReplace: true }, null)
      return refused
    })
  },
  removeKey(of) {
    const key = of.pick(keys)
    return of.both(`remove the key ${key}`, (catalog, bucketId) => catalog.removeKey(bucketId, key, {}))
  },
  replace(of) {
    const ids = of.some()
    const successors = { [of.pick(ids)]: of.pick(of.items) }
    return of.both(`replace ${ids} ${JSON.stringify(successors)}`, (catalog, bucketId) =>
      catalog.replaceItems(bucketId, ids, successors),
    )
  },
  createMultipart(of) {
    const upload = newMultipart({
      ...{ key: of.pick(keys), limitedBy: of.limitedOrNot(), expiresAt: Date.now() + day },
    })
    of.multiparts.push({ id: upload.id, key: upload.key, parts: new Map() })
    return of.both(`create ${upload.id}`, (catalog, bucketId) => catalog.createMultipart(bucketId, upload))
  },
  async putPart(of) {
    if (of.multiparts.length === 0) return
    const { id, parts } = of.pick(of.multiparts)
    const part = newPart(1 + of.random(3), 100 * (1 + of.random(5)))
    const replaced = await of.both(`part ${part.number} of ${id}`, (catalog, bucketId) =>
      catalog.putPart(bucketId, id, part, Date.now() + day),
    )
    if (replaced !== null) parts.set(part.number, part.itemId)
  },
  async completeMultipart(of) {
    if (of.multiparts.length === 0) return
    const { id, key, parts } = of.pick(of.multiparts)
    const chosen = [...parts].map(([number, itemId]) => ({ number, itemId }))
    const item = of.newItem()
    await of.both(`complete ${id} ${JSON.stringify(item)}`, async (catalog, bucketId) => {
      const added = { ...newKey(key, item), parts: '[]' }
      const replacement = { mayReplace: true, keptUntil: Date.now() + day }
      return (await catalog.completeMultipart(bucketId, id, chosen, added, replacement)).outcome
    })
  },
  async abortMultipart(of) {
    if (of.multiparts.length === 0) return
    const { id } = of.pick(of.multiparts)
    await of.both(`abort ${id}`, async (catalog, bucketId) =>
      (await catalog.removeMultipart(bucketId, id))?.toSorted(),
    )
  },
}

const uploadSteps: Readonly<Record<string, Step>> = {
  createUpload(of) {
    const length = of.random(2) ? 100 * (1 + of.random(9)) : null
    const { bucketId: _, ...upload } = newUpload(1 as BucketId, { length, limitedBy: of.limitedOrNot() })
    of.uploads.push(upload.id)
    return of.both(`upload ${upload.id} ${length}`, (catalog, bucketId) =>
      catalog.createUpload({ ...upload, bucketId }),
    )
  },
  async moveUpload(of) {
    if (of.uploads.length === 0) return
    const [id, more, isEnd] = [of.pick(of.uploads), 100 * of.random(5), of.random(2) === 0]
    await of.both(`move ${id} by ${more}, ${isEnd}`, async (catalog) => {
      const found = await catalog.findUpload(id)
      if (found === null || found.length !== null) return null
      const to = found.offset + more
      return [
        await catalog.moveUpload(id, found.offset, to, Date.now() + day),
        isEnd && (await catalog.declareLength(id, to)),
      ]
    })
  },
  async finishUpload(of) {
    if (of.uploads.length === 0) return
    const [id, item, removed] = [of.pick(of.uploads), of.newItem(), of.random(2) * 50]
    await of.both(`finish ${id} ${JSON.stringify(item)}`, async (catalog) => {
      const length = (await catalog.findUpload(id))?.length ?? null
      if (length === null) return null
      const added = withBytes({ ...item, size: Math.max(1, length - removed) })
      return catalog.finishUpload(id, added, Date.now() + day, undefined, length)
    })
  },
  async removeUpload(of) {
    if (of.uploads.length === 0) return
    const [id, onlyUnfinished] = [of.pick(of.uploads), of.random(2) === 0]
    await of.both(`remove the upload ${id}`, (catalog) => catalog.removeUpload(id, onlyUnfinished))
  },
}

const allItems = { order: 'newest', kind: null, from: 0, to: null, name: null } as const

const reads: Readonly<Record<string, Work>> = {
  bucket: (catalog, bucketId) => catalog.findBucketWithTrash(bucketId),
  page: (catalog, bucketId) => catalog.page(bucketId, 1),
  trash: async (catalog, bucketId) =>
    (await catalog.listTrash(bucketId, null, 100)).rows.map(({ item, expiresAt }) => [item.id, expiresAt]),
  keys: (catalog, bucketId) =>
    catalog.listKeys(bucketId, { prefix: '', delimiter: '/', after: null, limit: 100 }),
  labels: (catalog, bucketId) => catalog.listLabels(bucketId, null, { maxKeys: 9, maxValues: 9 }),
  items: async (catalog, bucketId) =>
    (await catalog.items({ ...allItems, bucketId }, null, 100)).rows.map(({ item }) => item),
}

const steps = Object.values({ ...itemSteps, ...keySteps, ...uploadSteps })

async function openEngines(): Promise<readonly Engine[]> {
  const [directory, url] = [join(tempDirectory(), 'data'), await freshCatalog()]
  const engines = [
    {
      catalog: await openSqliteCatalog({ directory, writer: 'direct' }),
      inspection: await openSqliteInspection(directory),
    },
    {
      catalog: await openPostgresCatalog({ url, role: 'command' }),
      inspection: await openPostgresInspection(url),
    },
  ]
  onTestFinished(async () => {
    for (const { catalog, inspection } of engines) {
      await inspection.close()
      await catalog.close()
    }
  })
  return engines
}

/** Removes a deleted bucket in steps, after each of which all counters match. */
async function removeBucket({ catalog }: Engine, of: TwoBuckets): Promise<void> {
  const id = await catalog.deleteBucket(of.name, true, Date.now(), { owner: 'owner', lifetime: day })
  if (typeof id !== 'number') throw new Error('the bucket was not deleted')
  for (let isDeleted = false; !isDeleted; ) {
    for (const upload of await catalog.uploadsOf(id)) await catalog.removeUpload(upload.id)
    isDeleted = (await catalog.deleteBucketChunk(id, 5, Date.now())).isDeleted
    await of.check()
  }
}

test('F1 after any changes and moves of the clock, both engines have the same items, and their counters match', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_900_000_000_000 })
  onTestFinished(() => void vi.useRealTimers())
  const engines = await openEngines()
  const random = seededRandom()
  for (let run = 0; run < 3; run += 1) {
    const of = new TwoBuckets(engines, `run-${run}`, random)
    await of.create()
    for (let step = 1; step <= 60; step += 1) {
      await of.pick(steps)(of)
      if (step % 10 > 0) continue
      await of.check()
      for (const [name, read] of Object.entries(reads)) await of.both(name, read)
      await of.both('limits', (catalog) => catalog.findToken(of.limited))
    }
    for (const engine of engines) await removeBucket(engine, of)
  }
  for (const { inspection } of engines) expect(await inspection.orphanedContents()).toEqual([])
}, 120_000)
