import { setImmediate } from 'node:timers/promises'
import { foldName, type ItemKind, itemKinds, nameKey } from '@mediabucket/client/rules'
import { describe, expect, test } from 'vitest'
import { random as randomOf, testSeed } from '../../../../../test/harness/random.ts'
import type { ItemId } from '../../../src/core/ids.ts'
import { itemOrders } from '../../../src/core/queries.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import { placeOf } from '../../../src/storage/catalog/lists/item-lists.ts'
import type {
  BucketId,
  ItemPlace,
  ItemRows,
  ItemSelection,
  NewItem,
} from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { hashOf, inBlobStore, newBucket, newItem, newKey } from './samples.ts'

type Random = (below: number) => number

/** A selection with a filter that has no index, and no text of its own in the product. */
export interface AnySelection extends ItemSelection {
  readonly width?: number
}

/** An item, and its key if it has one. */
interface AnyItem extends NewItem {
  readonly key?: string
}

const types: Readonly<Record<string, ItemKind>> = {
  'image/jpeg': 'image',
  'video/mp4': 'video',
  'audio/mpeg': 'audio',
  'application/pdf': 'document',
  'font/woff2': 'other',
}
const words = ['Harbour', 'beach', 'Été', 'IMG_', 'a', 'b 2', '10']
const hexOf = (sha256: Uint8Array) => Buffer.from(sha256).toString('hex')

const oneOf = <T>(random: Random, values: readonly T[]): T => {
  const value = values[random(values.length)]
  if (value === undefined) throw new RangeError('there are no values')
  return value
}
const often = <T>(random: Random, times: number, value: () => T): T | null =>
  random(times) === 0 ? null : value()

const anyName = (random: Random) =>
  often(random, 12, () => `${oneOf(random, words)}${oneOf(random, words)}${random(30)}.jpg`)

/** An item with few different values of each member, so that many items have the same ones; few have some labels. */
function anyItem(random: Random): NewItem {
  const labels = Object.fromEntries(
    ['album', 'user'].flatMap((key) =>
      random(3) === 0 ? [] : [[key, random(9) === 0 ? '2' : `${random(2)}`]],
    ),
  )
  return newItem({
    filename: anyName(random),
    contentType: oneOf(random, Object.keys(types)),
    createdAt: 1_000 + random(20),
    width: 1 + random(2),
    sha256: hashOf(`${random(4)}`),
    labels: Object.keys(labels).length === 0 ? null : labels,
    path: often(random, 2, () => `${oneOf(random, ['a', 'a/b', 'é'])}/${random(3)}`),
    takenAt: often(random, 3, () => 990 + random(40)),
    expiresAt: random(9) === 0 ? 1 : null,
  })
}

/** Any filters, in any order of a list. */
export function anySelection(random: Random, bucketId: BucketId): AnySelection {
  const by = oneOf(random, [null, null, 'taken', 'name'] as const)
  const few = 2 + random(6)
  const some = <T>(value: () => T): T | null => (random(few) === 0 ? value() : null)
  const term = () => foldName(oneOf(random, words)).split(' ')[0] ?? ''
  const labels = () => ({ album: `${random(3)}`, ...(random(2) === 0 && { user: `${random(2)}` }) })
  const width = some(() => 1 + random(3))
  const all = {
    ...{ bucketId, order: oneOf(random, itemOrders), by },
    kind: some(() => oneOf(random, itemKinds)),
    from: some(() => 985 + random(30)),
    to: some(() => 1_000 + random(30)),
    name: some(() => (random(2) === 0 ? ([term()] as const) : ([term(), 'jpg'] as const))),
    labels: some(labels),
    sha256: some(() => hexOf(hashOf(`${random(5)}`))),
    path: some(() => oneOf(random, ['', 'a', 'a/', 'é/1', 'absent'])),
    key: by === null ? some(() => oneOf(random, ['', 'a', 'a/', 'é', 'absent'])) : null,
  }
  return { ...all, ...(width === null ? {} : { width }) }
}

const timeOf = ({ by }: ItemSelection, { takenAt, createdAt }: NewItem) =>
  by === 'taken' ? (takenAt ?? createdAt) : createdAt

/** Whether a selection has an item, by the rules of lists (K8, K11, K14, K16, K17, K19, E2). */
function selects(selection: AnySelection, item: AnyItem): boolean {
  const { kind, from, to, name, labels, sha256, path, key, width } = selection
  const time = timeOf(selection, item)
  return (
    item.expiresAt == null &&
    (kind === null || types[item.contentType] === kind) &&
    (from === null || time >= from) &&
    (to === null || time < to) &&
    (name ?? []).every((term) => item.filename !== null && foldName(item.filename).includes(term)) &&
    Object.entries(labels ?? {}).every(([key, value]) => item.labels?.[key] === value) &&
    (sha256 == null || hexOf(item.sha256) === sha256) &&
    (path == null || item.path?.startsWith(path) === true) &&
    (key == null || item.key?.startsWith(key) === true) &&
    (width === undefined || item.width === width)
  )
}

const bytewise = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))

/** Compares two items by the rules of orders (K2, K9, K12, K16, K17, K19 to K21); 0 for those in the order of their upload. */
function compare(selection: ItemSelection, one: AnyItem, other: AnyItem): number {
  const { by, kind, from, to, name, labels, sha256, path, key } = selection
  const keyOf = ({ filename }: NewItem) => nameKey(foldName(filename ?? ''))
  if (by === 'name') return bytewise(keyOf(one), keyOf(other))
  if (by === 'taken') return timeOf(selection, one) - timeOf(selection, other)
  if (key != null) return bytewise(one.key ?? '', other.key ?? '')
  if (sha256 != null) return 0
  if (path != null) return bytewise(one.path ?? '', other.path ?? '')
  const isByTime = labels != null || (name === null && (kind !== null || from !== null || to !== null))
  return isByTime ? one.createdAt - other.createdAt : 0
}

/** The items of a list, of all items of its bucket in the order of their upload. */
export function expectedList(selection: AnySelection, items: readonly AnyItem[]): ItemId[] {
  const found = items
    .filter((item) => selects(selection, item))
    .toSorted((one, other) => compare(selection, one, other))
    .map(({ id }) => id)
  return selection.order === 'oldest' ? found : found.toReversed()
}

/** Reads a list to its end, in parts of these lengths. */
export async function readList(
  selection: AnySelection,
  read: (after: ItemPlace | null) => Promise<{ readonly part: ItemRows; readonly limit: number }>,
): Promise<ItemId[]> {
  const found: ItemId[] = []
  for (let after: ItemPlace | null = null; ; ) {
    const { part, limit } = await read(after)
    found.push(...part.rows.map(({ item }) => item.id))
    const last = part.rows.at(-1)
    if (part.examined === null && part.rows.length < limit) return found
    after = part.examined ?? (last ? placeOf(selection, last) : null)
  }
}

const readFrom = (catalog: Catalog, selection: AnySelection, limit: number) =>
  readList(selection, async (after) => ({ part: await catalog.items(selection, after, limit), limit }))

/** Adds items, and renames, labels and deletes some. Returns those that are left, in the order of their upload. */
export async function fillAnyhow(
  catalog: Catalog,
  bucketId: BucketId,
  random: Random,
  count: number,
): Promise<AnyItem[]> {
  const items: AnyItem[] = Array.from({ length: count }, () => anyItem(random))
  for (let done = 0; done < count; ) {
    const some = items.slice(done, done + random(12))
    await catalog.addItems(bucketId, inBlobStore(some))
    done += some.length
    const item = items[done]
    if (item === undefined) break
    const key = `${oneOf(random, ['a', 'a/', 'b', 'é/'])}${random(9)}/${done}`
    items[done] = { ...item, key }
    await catalog.putKey(bucketId, newKey(key, item), { mayReplace: true }, null)
    done += 1
  }
  const removed = items.filter(({ expiresAt }) => expiresAt == null && random(6) === 0).map(({ id }) => id)
  await catalog.removeItems(bucketId, removed)
  const left: AnyItem[] = []
  for (const item of items.filter(({ id }) => !removed.includes(id))) {
    if (item.expiresAt != null || random(8) > 0) left.push(item)
    else {
      const filename = anyName(random)
      await catalog.editItem(bucketId, item.id, { filename, labels: { album: '0' } }, null)
      left.push({ ...item, filename, labels: { ...item.labels, album: '0' } })
    }
  }
  return left
}

/** Lists with any filters in any order, on every catalog engine. */
export function describeScans(engine: string, fresh: Fresh): void {
  describe(`${engine}: any list`, () => {
    test('K2, K4, K8, K9, K11, K14, K16, K17, K19 to K21 any filters in any order select what a comparison of all items does', async () => {
      const random = randomOf(testSeed())
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'a')
      await fillAnyhow(catalog, await newBucket(catalog, 'b'), random, 50)
      const items = await fillAnyhow(catalog, bucketId, random, 300)
      for (let round = 0; round < 100; round += 1) {
        const selection = anySelection(random, bucketId)
        const limit = random(2) === 0 ? 1 + random(20) : 10 + random(200)
        const found = await readFrom(catalog, selection, limit)
        expect({ selection, limit, found }).toEqual({
          selection,
          limit,
          found: expectedList(selection, items),
        })
      }
    })

    test('K5 while another process adds, edits and deletes items, any list has each of the others once, and none that it never selected', async () => {
      const random = randomOf(testSeed())
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'a')
      const stable = await fillAnyhow(catalog, bucketId, random, 150)
      /** All states that each of the other items has had. */
      const states = new Map<ItemId, NewItem[]>()
      let isOver = false
      async function change() {
        while (!isOver) {
          const added = Array.from({ length: 1 + random(4) }, () => anyItem(random))
          for (const item of added) states.set(item.id, [item])
          await other.addItems(bucketId, inBlobStore(added))
          const [first = anyItem(random), ...rest] = added
          const [filename, labels] = [anyName(random), { album: `${random(3)}` }]
          const edited = { ...first, filename, labels: { ...first.labels, ...labels } }
          states.get(first.id)?.push(edited)
          await other.editItem(bucketId, first.id, { filename, labels }, null)
          const removed = random(2) === 0 ? added : rest
          await other.removeItems(
            bucketId,
            removed.map(({ id }) => id),
          )
          await setImmediate()
        }
      }
      const changing = change()
      try {
        for (let round = 0; round < 40; round += 1) {
          const selection = anySelection(random, bucketId)
          const found = await readFrom(catalog, selection, 3 + random(40))
          const expected = expectedList(selection, stable)
          const ofStable = new Set(stable.map(({ id }) => id))
          expect({ selection, found: found.filter((id) => ofStable.has(id)) }).toEqual({
            selection,
            found: expected,
          })
          for (const id of found)
            if (!ofStable.has(id))
              expect({ selection, states: states.get(id) }).toEqual({
                selection,
                states: expect.toSatisfy((known: NewItem[]) =>
                  known.some((item) => selects(selection, item)),
                ),
              })
        }
      } finally {
        isOver = true
        await changing
      }
    })
  })
}
