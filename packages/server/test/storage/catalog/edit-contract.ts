import { describe, expect, test } from 'vitest'
import { storedFocus } from '../../../src/core/focus.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { allPages, hashOf, newBucket, newItem, newItems, withBytes } from './samples.ts'

/** Edits of items, on every catalog engine. */
export function describeEdits(engine: string, fresh: Fresh): void {
  describe(`${engine}: edits`, () => {
    test('M5 an edit changes the given texts, and is in every read of the next moment', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const [item, kept] = [newItem(), newItem()]
      await catalog.addItems(bucketId, [withBytes(item), withBytes(kept)])
      const unseen = { thumbhash: null, duration: null, altText: null, caption: null }
      const stored = { ...item, ...unseen }
      const before = await catalog.findGrant(hashOf('b'))
      const altText = 'three boats — 船'
      const edited = await catalog.editItem(bucketId, item.id, { altText, filename: 'boats.png' }, null)
      expect(edited).toEqual({ ...stored, altText, filename: 'boats.png' })
      expect(await other.item(item.id)).toMatchObject({ altText, caption: null, filename: 'boats.png' })
      expect(await catalog.editItem(bucketId, item.id, { caption: 'x', filename: null }, null)).toEqual({
        ...stored,
        altText,
        caption: 'x',
        filename: null,
      })
      for (const filter of [{}, { kind: 'image' as const }]) {
        const selection = {
          bucketId,
          order: 'oldest',
          kind: null,
          from: null,
          to: null,
          name: null,
          ...filter,
        } as const
        const { rows } = await other.items(selection, null, 9)
        expect(rows.map((row) => row.item)).toEqual([
          { ...stored, altText, caption: 'x', filename: null },
          { ...kept, ...unseen },
        ])
      }
      const after = await other.findGrant(hashOf('b'))
      expect(after?.revision).toBeGreaterThan(before?.revision ?? Number.POSITIVE_INFINITY)
      expect(await allPages(catalog, bucketId)).toEqual([item.id, kept.id])
      expect(await other.servability([item.id, kept.id])).toEqual(['renamed', 'servable'])
    })

    test('M5 an edit without a change, of other texts than expected or of a foreign item changes nothing', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const other = await newBucket(catalog, 'other')
      const item = newItem()
      await catalog.addItems(bucketId, [withBytes(item)])
      const before = await catalog.findGrant(hashOf('b'))
      const texts = { filename: item.filename, altText: null, caption: null }
      for (const edit of [{}, { filename: item.filename }, { caption: null }])
        expect(await catalog.editItem(bucketId, item.id, edit, texts)).toMatchObject(texts)
      const edit = { caption: 'x' }
      expect(await catalog.editItem(other, item.id, edit, null)).toBe('missing')
      expect(await catalog.editItem(bucketId, newItem().id, edit, null)).toBe('missing')
      for (const wrong of [{ filename: 'other' }, { altText: '' }, { caption: '' }])
        expect(await catalog.editItem(bucketId, item.id, edit, { ...texts, ...wrong })).toBe('changed')
      expect((await catalog.findGrant(hashOf('b')))?.revision).toBe(before?.revision)
      expect(await catalog.servability([item.id])).toEqual(['servable'])
    })

    test('M11 a focus is edited and removed, and variants of its item are no longer those of the service', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const [item, uploaded] = [newItem(), newItem({ focus: storedFocus({ x: 1, y: 0.5 }) })]
      await catalog.addItems(bucketId, [item, uploaded].map(withBytes))
      const states = () => other.servability([item.id, uploaded.id])
      expect(await states()).toEqual(['servable', 'styled'])
      const focus = storedFocus({ x: 0, y: 1 })
      expect(await catalog.editItem(bucketId, item.id, { focus }, null)).toMatchObject({ focus })
      expect(await states()).toEqual(['styled', 'styled'])
      expect((await other.item(item.id))?.focus).toBe(focus)
      const texts = { filename: item.filename, altText: null, caption: null }
      expect(await catalog.editItem(bucketId, item.id, { focus: null }, texts)).toBe('changed')
      for (const { id } of [item, uploaded]) await other.editItem(bucketId, id, { focus: null }, null)
      expect(await catalog.servability([item.id, uploaded.id])).toEqual(['servable', 'servable'])
      expect(await catalog.item(uploaded.id)).not.toHaveProperty('focus')
    })

    test('V19, V21 items and grants have the options of their bucket about pictures, from the next read on', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const item = newItem()
      await catalog.addItems(bucketId, [withBytes(item)])
      const read = async () => [
        (await other.item(item.id))?.pictures,
        (await other.findGrant(hashOf('b')))?.pictures,
        await other.servability([item.id]),
      ]
      expect(await read()).toEqual([null, null, ['servable']])
      for (const [settings, pictures] of [
        [{ variants: ['card=9:cover', '32'] }, ';;card=9:cover 32'],
        [{ publicVariants: ['card'], crop: 'attention' }, 'attention;card;card=9:cover 32'],
        [{ variants: null, publicVariants: null }, 'attention;;'],
      ] as const) {
        await catalog.setBucket('b', settings)
        expect(await read()).toEqual([pictures, pictures, ['styled']])
        expect(await other.listPictureOptions()).toEqual([{ id: bucketId, pictures }])
      }
      await catalog.setBucket('b', { isPrivate: true })
      expect((await read())[2]).toEqual(['private'])
      await catalog.setBucket('b', { crop: null, isPrivate: false })
      expect(await read()).toEqual([null, null, ['servable']])
      expect(await other.listPictureOptions()).toEqual([])
    })

    test('M6 of many concurrent edits of one state, one succeeds', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const [item] = newItems(1)
      if (!item) throw new Error('no item')
      await catalog.addItems(bucketId, [withBytes(item)])
      const expected = { filename: item.filename, altText: null, caption: null }
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? catalog : other).editItem(bucketId, item.id, { caption: `${index}` }, expected),
        ),
      )
      const [winner, ...others] = results.filter((result) => result !== 'changed')
      expect(others).toEqual([])
      expect(await catalog.item(item.id)).toMatchObject(winner ?? {})
    })
  })
}
