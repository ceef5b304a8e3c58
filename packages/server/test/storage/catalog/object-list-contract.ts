import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../../../../test/harness/random.ts'
import type { ItemId } from '../../../src/core/ids.ts'
import { itemKeyOf } from '../../../src/core/object-key-rules.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { KeySelection } from '../../../src/storage/catalog/objects/object-lists.ts'
import type { BucketId } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openTwo } from './fresh-data.ts'
import { newBucket, newItem, newKey, withBytes } from './samples.ts'

const pieces = [
  'a',
  'b',
  '/',
  '_items',
  '_items0',
  '_',
  '~',
  '\u0000',
  '\u0001',
  'é',
  '\u07ff',
  '\uffff',
  '\u{1f600}',
  '\u{10ffff}',
  '0',
  '//',
  'ab',
  '-',
  '.',
]
const compare = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))

/** The items of a bucket as they should be: the number of each, and its key, null for a derived one. */
class Model {
  readonly #items = new Map<ItemId, { readonly seq: number; key: string | null }>()
  readonly trash = new Map<ItemId, number>()
  next = 0

  add(id: ItemId, key: string | null): void {
    this.#items.set(id, { seq: this.next++, key })
  }

  keyOf(id: ItemId): string {
    const { seq = -1, key = null } = this.#items.get(id) ?? {}
    return key ?? itemKeyOf(seq, { id, extension: 'jpg' })
  }

  find(key: string): ItemId | null {
    return this.ids().find((id) => this.keyOf(id) === key) ?? null
  }

  ids = (): ItemId[] => [...this.#items.keys()]
  keys = (): string[] =>
    this.ids()
      .map((id) => this.keyOf(id))
      .toSorted(compare)

  remove(id: ItemId): void {
    this.trash.set(id, this.#items.get(id)?.seq ?? -1)
    this.#items.delete(id)
  }

  restore(id: ItemId): void {
    this.#items.set(id, { seq: this.trash.get(id) ?? -1, key: null })
    this.trash.delete(id)
  }

  list({ prefix, delimiter, after, isKeyedOnly = false }: Omit<KeySelection, 'limit'>): string[] {
    const entries: string[] = []
    const derived = new Set(
      this.ids().flatMap((id) => (this.#items.get(id)?.key == null ? this.keyOf(id) : [])),
    )
    for (const key of this.keys()) {
      if (isKeyedOnly && derived.has(key)) continue
      if (!key.startsWith(prefix) || (after !== null && compare(key, after) <= 0)) continue
      const at = delimiter === null ? -1 : key.indexOf(delimiter, prefix.length)
      const entry = at < 0 || delimiter === null ? key : `${key.slice(0, at + delimiter.length)}*`
      if (entry !== entries.at(-1) && entry !== `${after}*`) entries.push(entry)
    }
    return entries
  }
}

async function listAll(catalog: Catalog, bucketId: BucketId, selection: KeySelection): Promise<string[]> {
  const found: string[] = []
  let { after } = selection
  for (;;) {
    const entries = await catalog.listKeys(bucketId, { ...selection, after })
    found.push(...entries.map((entry) => ('key' in entry ? entry.key : `${entry.prefix}*`)))
    const last = entries.at(-1)
    if (last === undefined || entries.length < selection.limit) return found
    after = 'key' in last ? last.key : last.prefix
  }
}

/** Lists by key, and changes at random, compared with a model. */
export function describeObjectLists(engine: string, fresh: Fresh): void {
  describe(`${engine}: keys at random`, () => {
    test('OK1, OK2, OK4 to OK6 each key names one item or none after any changes, and lists have all of them in order', async () => {
      const random = seededRandom()
      const pick = <T>(values: readonly T[]): T => values[random(values.length)] as T
      const text = (most: number) => Array.from({ length: 1 + random(most) }, () => pick(pieces)).join('')
      const { catalog, other } = await openTwo(fresh)
      await catalog.createBucket('b', { trashDays: 1 }, 1)
      const bucketId = await newBucket(catalog, 'b')
      const model = new Model()
      const names = Array.from({ length: 50 }, () => text(5)).filter((key) => !key.startsWith('_items/'))
      const steps: Record<string, () => Promise<void>> = {
        async put() {
          const key = pick(names)
          const item = newItem()
          const ifNone = random(3) === 0 ? { ifNoneMatch: '*' } : {}
          const { refused } = await catalog.putKey(
            bucketId,
            newKey(key, item),
            { mayReplace: true, ...ifNone },
            null,
          )
          const earlier = model.find(key)
          expect(refused).toBe(earlier !== null && 'ifNoneMatch' in ifNone ? 'precondition-failed' : null)
          if (refused !== null) return
          if (earlier !== null) model.remove(earlier)
          model.add(item.id, key)
        },
        async add() {
          const item = newItem()
          await other.addItems(bucketId, [withBytes(item)])
          model.add(item.id, null)
        },
        async expired() {
          const key = pick(names)
          if (model.find(key) !== null) return
          await catalog.putKey(bucketId, newKey(key, newItem({ expiresAt: 5 })), { mayReplace: true }, null)
          model.next += 1
        },
        async expire() {
          await other.expireItems(bucketId)
        },
        async removeKey() {
          const key = random(2) === 0 ? pick(names) : (model.keys()[random(model.keys().length || 1)] ?? 'a')
          const id = model.find(key)
          expect((await other.removeKey(bucketId, key, {})).refused).toBe(id === null ? 'key-unknown' : null)
          if (id !== null) model.remove(id)
        },
        async removeItem() {
          const id = model.ids()[random(model.ids().length || 1)]
          if (id === undefined) return
          await catalog.removeItems(bucketId, [id])
          model.remove(id)
        },
        async restore() {
          const id = [...model.trash.keys()][random(model.trash.size || 1)]
          if (id === undefined) return
          expect(await catalog.restoreItems(bucketId, [id])).toEqual([id])
          model.restore(id)
        },
        async rename() {
          const id = model.ids()[random(model.ids().length || 1)]
          if (id !== undefined) await catalog.editItem(bucketId, id, { filename: `${random(100)}.jpg` }, null)
        },
        async publish() {
          await catalog.editKey(bucketId, pick(names), { isPublic: random(2) === 0 }, {})
        },
      }
      /** Often near a key, an entry or the items without keys. */
      const anySelection = (): KeySelection => {
        const delimiter = pick([null, '/', text(1), text(2), text(3)])
        const near = () => {
          const key = [...pick([...model.keys(), ...names, '_items/'])]
          const start = key.slice(0, random(key.length + 1)).join('')
          return pick([key.join(''), start, start + (delimiter ?? ''), start + text(1)])
        }
        return {
          ...{ prefix: pick(['', text(2), near()]), delimiter },
          ...{ after: pick([null, text(3), near()]), limit: 1 + random(pick([7, 50])) },
          isKeyedOnly: random(4) === 0,
        }
      }
      const weighted = ['put', 'put', 'put', 'add', ...Object.keys(steps)]
      for (let step = 0; step < 150; step += 1) {
        await steps[pick(weighted)]?.()
        for (let lists = 0; lists < 3; lists += 1) {
          const selection = anySelection()
          const why = `step ${step}, ${JSON.stringify(selection)}`
          expect(await listAll(other, bucketId, selection), why).toEqual(model.list(selection))
        }
      }
      for (const key of [...names, ...model.keys()])
        expect((await catalog.findKey(bucketId, key))?.item.id ?? null).toBe(model.find(key))
      await catalog.expireItems(bucketId)
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: model.ids().length })
    }, 120_000)
  })
}
