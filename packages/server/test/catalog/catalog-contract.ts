import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { BucketId, Catalog, TokenId } from '../../src/catalog/catalog.ts'
import { newMediaId } from '../../src/core/media-id.ts'
import { allPages, hashOf, newBucket, newItem, newItems, newToken } from './samples.ts'

/** New, empty data, which `open` opens: each time as another process would. Gone when the test ends. */
export interface FreshData {
  open(): Promise<Catalog>
}

/** What every engine of the catalog does; `fresh` is called within each test. */
export function describeCatalog(engine: string, fresh: () => Promise<FreshData>): void {
  async function openTwice(): Promise<{ catalog: Catalog; other: Catalog }> {
    const data = await fresh()
    const catalog = await data.open()
    onTestFinished(() => catalog.close())
    const other = await data.open()
    onTestFinished(() => other.close())
    return { catalog, other }
  }

  async function open(): Promise<Catalog> {
    const catalog = await (await fresh()).open()
    onTestFinished(() => catalog.close())
    return catalog
  }

  describe(`${engine}: data`, () => {
    test('is new until the first bucket is made', async () => {
      const catalog = await open()
      expect(await catalog.isNew()).toBe(true)
      await catalog.addToken(newToken('first'))
      expect(await catalog.isNew()).toBe(false)
    })

    test('has an epoch that stays and that no other data has', async () => {
      const { catalog, other } = await openTwice()
      expect(catalog.epoch).toMatch(/^\S{16,}$/)
      expect(other.epoch).toBe(catalog.epoch)
      expect((await open()).epoch).not.toBe(catalog.epoch)
    })

    test('outlives its process', async () => {
      const data = await fresh()
      const first = await data.open()
      const bucketId = await newBucket(first, 'kept')
      const items = newItems(12)
      await first.addMedia(bucketId, items)
      await first.close()

      const second = await data.open()
      onTestFinished(() => second.close())
      expect(await allPages(second, bucketId)).toEqual(items.map((item) => item.id))
    })

    test('passes its check while it can be read and written', async () => {
      await expect((await open()).check()).resolves.toBeUndefined()
    })

    test('what was asked before close is done, what is asked after is refused', async () => {
      const data = await fresh()
      const catalog = await data.open()
      const bucketId = await newBucket(catalog, 'closing')
      const added = catalog.addMedia(bucketId, newItems(1))
      await catalog.close()
      await expect(added).resolves.toBeUndefined()
      await expect(catalog.addMedia(bucketId, newItems(1))).rejects.toThrow()
      await expect(catalog.authorise(hashOf('closing'))).rejects.toThrow()
    })
  })

  describe(`${engine}: tokens`, () => {
    test('a grant tells of the token and of its bucket', async () => {
      const catalog = await open()
      await catalog.addToken(newToken('a', { expiresAt: 1_800_000_000_000 }))
      const grant = await catalog.authorise(hashOf('a'))
      expect(grant).toEqual({
        tokenId: 'a',
        bucketId: expect.any(Number),
        scopes: new Set(['media:read', 'media:write']),
        expiresAt: 1_800_000_000_000,
        revokedAt: null,
        lastUsedAt: null,
        revision: 0,
        total: 0,
      })
    })

    test('an unknown hash has no grant', async () => {
      const catalog = await open()
      await catalog.addToken(newToken('a'))
      expect(await catalog.authorise(hashOf('b'))).toBeNull()
    })

    test('a token without scopes grants none', async () => {
      const catalog = await open()
      await catalog.addToken(newToken('a', { scopes: [] }))
      expect((await catalog.authorise(hashOf('a')))?.scopes).toEqual(new Set())
    })

    test('tokens of one bucket name share a bucket', async () => {
      const catalog = await open()
      await catalog.addToken(newToken('a'))
      await catalog.addToken(newToken('b'))
      await catalog.addToken(newToken('c', { bucket: 'work' }))
      const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => catalog.authorise(hashOf(name))))
      expect(b?.bucketId).toBe(a?.bucketId)
      expect(c?.bucketId).not.toBe(a?.bucketId)
    })

    test('a hash or an id that is taken is refused, and its bucket is not made', async () => {
      const catalog = await open()
      await catalog.addToken(newToken('a'))
      await expect(catalog.addToken(newToken('b', { hash: hashOf('a'), bucket: 'new' }))).rejects.toThrow()
      await expect(catalog.addToken(newToken('a', { hash: hashOf('b'), bucket: 'new' }))).rejects.toThrow()
      expect(await catalog.tokens()).toHaveLength(1)
      await catalog.addToken(newToken('c'))
      expect(await catalog.tokens('new')).toEqual([])
    })

    test('A7 a token revoked in another process is revoked in the next authorisation', async () => {
      const { catalog, other } = await openTwice()
      await catalog.addToken(newToken('a'))
      expect((await catalog.authorise(hashOf('a')))?.revokedAt).toBeNull()
      expect(await other.revokeToken('a' as TokenId, 5_000)).toBe(true)
      expect((await catalog.authorise(hashOf('a')))?.revokedAt).toBe(5_000)
    })

    test('revoking twice keeps the first time; an unknown token cannot be revoked', async () => {
      const catalog = await open()
      await catalog.addToken(newToken('a'))
      expect(await catalog.revokeToken('a' as TokenId, 5_000)).toBe(true)
      expect(await catalog.revokeToken('a' as TokenId, 6_000)).toBe(true)
      expect((await catalog.authorise(hashOf('a')))?.revokedAt).toBe(5_000)
      expect(await catalog.revokeToken('b' as TokenId, 5_000)).toBe(false)
    })

    test('a use is recorded', async () => {
      const catalog = await open()
      await catalog.addToken(newToken('a'))
      await catalog.touchToken('a' as TokenId, 7_000)
      expect((await catalog.authorise(hashOf('a')))?.lastUsedAt).toBe(7_000)
    })

    test('are listed oldest first, of all buckets or of one, without their hashes', async () => {
      const catalog = await open()
      await catalog.addToken(newToken('young', { createdAt: 3_000 }))
      await catalog.addToken(newToken('work', { bucket: 'work', createdAt: 2_000, expiresAt: 9_000 }))
      await catalog.addToken(newToken('old', { createdAt: 1_000 }))
      expect((await catalog.tokens()).map((token) => token.name)).toEqual(['old', 'work', 'young'])
      expect((await catalog.tokens('holiday')).map((token) => token.name)).toEqual(['old', 'young'])
      expect(await catalog.tokens('work')).toEqual([
        {
          id: 'work',
          bucket: 'work',
          name: 'work',
          scopes: ['media:read', 'media:write'],
          createdAt: 2_000,
          expiresAt: 9_000,
          lastUsedAt: null,
          revokedAt: null,
        },
      ])
      expect(await catalog.tokens('nobody')).toEqual([])
    })
  })

  describe(`${engine}: media`, () => {
    test('an item is kept whole', async () => {
      const catalog = await open()
      const bucketId = await newBucket(catalog, 'b')
      const whole = newItem({ size: 2 ** 45, filename: 'Übersicht 🗺.jpg' })
      const bare = newItem({
        filename: null,
        extension: null,
        sha256: null,
        width: null,
        height: null,
        size: 0,
      })
      await catalog.addMedia(bucketId, [whole, bare])
      expect(await catalog.media(whole.id)).toEqual({ ...whole, bucketId })
      expect(await catalog.media(bare.id)).toEqual({ ...bare, bucketId })
      expect(await catalog.media(newMediaId())).toBeNull()
    })

    test('L10 items are listed in the order in which they were added, ten a page', async () => {
      const catalog = await open()
      const bucketId = await newBucket(catalog, 'b')
      const items = newItems(25)
      await catalog.addMedia(bucketId, items.slice(0, 3))
      await catalog.addMedia(bucketId, items.slice(3))
      const pages = await Promise.all([1, 2, 3].map((page) => catalog.page(bucketId, page)))
      expect(pages.map(({ rows }) => rows.length)).toEqual([10, 10, 5])
      const listed = items.map(({ id, extension }) => ({ id, extension }))
      expect(pages.flatMap(({ rows }) => rows)).toEqual(listed)
      expect(new Set(pages.map(({ total }) => total))).toEqual(new Set([25]))
    })

    test('L12 pages past the end are empty and tell the total, up to the largest number', async () => {
      const catalog = await open()
      const bucketId = await newBucket(catalog, 'b')
      expect(await catalog.page(bucketId, 1)).toEqual({ revision: 0, total: 0, rows: [] })
      await catalog.addMedia(bucketId, newItems(10))
      for (const page of [2, 3, 2 ** 31, 2 ** 32, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
        expect(await catalog.page(bucketId, page)).toMatchObject({ total: 10, rows: [] })
      }
    })

    test('U2 items are added all or none', async () => {
      const catalog = await open()
      const bucketId = await newBucket(catalog, 'b')
      const [first, ...more] = newItems(3)
      if (!first) throw new Error('no item')
      await catalog.addMedia(bucketId, [first])
      const before = await catalog.page(bucketId, 1)
      await expect(catalog.addMedia(bucketId, [...more, first])).rejects.toThrow()
      expect(await catalog.page(bucketId, 1)).toEqual(before)
      await catalog.addMedia(bucketId, more)
      expect(await allPages(catalog, bucketId)).toEqual([first, ...more].map((item) => item.id))
    })

    test('a bucket that does not exist takes nothing', async () => {
      const catalog = await open()
      await expect(catalog.addMedia(99 as BucketId, newItems(1))).rejects.toThrow()
    })

    test('M2 a removed item is gone and leaves a tombstone until its bytes are gone too', async () => {
      const catalog = await open()
      const bucketId = await newBucket(catalog, 'b')
      const [kept, gone] = newItems(2)
      if (!kept || !gone) throw new Error('no item')
      await catalog.addMedia(bucketId, [kept, gone])
      expect(await catalog.removeMedia(bucketId, gone.id)).toBe(true)
      expect(await catalog.removeMedia(bucketId, gone.id)).toBe(false)
      expect(await catalog.media(gone.id)).toBeNull()
      expect(await allPages(catalog, bucketId)).toEqual([kept.id])
      expect(await catalog.tombstones()).toEqual([gone.id])
      await catalog.clearTombstones([gone.id])
      expect(await catalog.tombstones()).toEqual([])
    })

    test('A6 an item of another bucket can neither be seen nor removed', async () => {
      const catalog = await open()
      const mine = await newBucket(catalog, 'mine')
      const theirs = await newBucket(catalog, 'theirs')
      const item = newItem()
      await catalog.addMedia(theirs, [item])
      expect(await allPages(catalog, mine)).toEqual([])
      expect(await catalog.removeMedia(mine, item.id)).toBe(false)
      expect(await allPages(catalog, theirs)).toEqual([item.id])
      expect(await catalog.tombstones()).toEqual([])
    })

    test('the revision grows with every change of the items and with nothing else', async () => {
      const catalog = await open()
      const bucketId = await newBucket(catalog, 'b')
      const revisions: number[] = []
      const note = async () => {
        const grant = await catalog.authorise(hashOf('b'))
        const page = await catalog.page(bucketId, 1)
        expect(grant).toMatchObject({ revision: page.revision, total: page.total })
        revisions.push(page.revision)
      }
      await note()
      const item = newItem()
      await catalog.addMedia(bucketId, [item, newItem()])
      await note()
      await catalog.removeMedia(bucketId, item.id)
      await note()
      const grown = [...revisions]
      expect(new Set(grown).size).toBe(3)
      expect(grown).toEqual(grown.toSorted((a, b) => a - b))

      await catalog.addMedia(bucketId, [])
      await catalog.removeMedia(bucketId, item.id)
      await catalog.clearTombstones([item.id])
      await catalog.touchToken('b' as TokenId, 1)
      await catalog.addToken(newToken('second', { bucket: 'b' }))
      await note()
      expect(revisions.at(-1)).toBe(grown.at(-1))
    })

    test('a read sees what another process has committed', async () => {
      const { catalog, other } = await openTwice()
      const bucketId = await newBucket(catalog, 'b')
      for (const item of newItems(15)) {
        await other.addMedia(bucketId, [item])
        const { total } = await catalog.page(bucketId, 1)
        expect((await catalog.authorise(hashOf('b')))?.total).toBe(total)
        expect(await allPages(catalog, bucketId)).toHaveLength(total)
        expect((await catalog.media(item.id))?.id).toBe(item.id)
      }
    })

    test('any adds and removals: every page equals that of a plain array', async () => {
      const step = fc.oneof(
        fc.record({ add: fc.integer({ min: 1, max: 30 }) }),
        fc.record({ remove: fc.array(fc.nat(), { maxLength: 8 }) }),
      )
      const catalog = await open()
      let run = 0
      const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const bucketId = await newBucket(catalog, `run ${run++}`)
        let model: string[] = []
        for (const step of steps) {
          if ('add' in step) {
            const items = newItems(step.add)
            await catalog.addMedia(bucketId, items)
            model.push(...items.map((item) => item.id))
          } else {
            const ids = new Set(step.remove.map((number) => model[number % model.length]))
            const removals = [...ids].map((id) => id && catalog.removeMedia(bucketId, id as never))
            await Promise.all(removals)
            model = model.filter((id) => !ids.has(id))
          }
          expect(await allPages(catalog, bucketId)).toEqual(model)
        }
      })
      await fc.assert(property, { numRuns: 20 })
    })

    test('changes made at the same time are all there, each with its items side by side', async () => {
      const { catalog, other } = await openTwice()
      const bucketId = await newBucket(catalog, 'b')
      const doomed = newItems(20)
      await catalog.addMedia(bucketId, doomed)
      const requests = Array.from({ length: 150 }, (_, index) => newItems(1 + (index % 4)))
      await Promise.all([
        ...requests.map((items, index) => (index % 10 === 0 ? other : catalog).addMedia(bucketId, items)),
        ...doomed.map((item) => catalog.removeMedia(bucketId, item.id)),
      ])
      const listed = await allPages(catalog, bucketId)
      const wanted = requests.map((items) => items.map((item) => item.id).join())
      expect(listed).toHaveLength(requests.flat().length)
      for (const run of wanted) expect(listed.join()).toContain(run)
      expect(new Set(listed).size).toBe(listed.length)
    })

    test('L4 a page read while items come and go has as many rows as its own total says', async () => {
      const { catalog, other } = await openTwice()
      const bucketId = await newBucket(catalog, 'b')
      let writing = true
      const writes = (async () => {
        for (let round = 0; round < 40; round++) {
          const items = newItems(3)
          await other.addMedia(bucketId, items)
          await Promise.all(items.slice(1).map((item) => other.removeMedia(bucketId, item.id)))
        }
        writing = false
      })()
      while (writing) {
        const page = 1 + Math.floor(Math.random() * 5)
        const { total, rows } = await catalog.page(bucketId, page)
        expect(rows).toHaveLength(Math.min(10, Math.max(0, total - (page - 1) * 10)))
        await new Promise((resolve) => setImmediate(resolve))
      }
      await writes
    })
  })
}
