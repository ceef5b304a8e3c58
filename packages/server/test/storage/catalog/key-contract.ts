import { describe, expect, test } from 'vitest'
import { newSigningKey } from '../../../src/access/signed-links.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'

/** The keys that sign URLs, of every catalog engine. */
export function describeKeys(engine: string, fresh: Fresh): void {
  describe(`${engine}: signing keys`, () => {
    test('H8 are listed in the order of their creation, with their secrets, in every process', async () => {
      const { catalog, other } = await openTwo(fresh)
      expect(await catalog.signingKeys()).toEqual([])
      const keys = [9, 1, 5].map(newSigningKey)
      for (const key of keys) await catalog.addSigningKey(key, false)
      expect(await other.signingKeys()).toEqual(keys)
      expect(new Set(keys.map(({ id }) => id)).size).toBe(3)
      expect(keys.map(({ secret }) => secret.byteLength)).toEqual([32, 32, 32])
    })

    test('H8 are valid after a restart', async () => {
      const data = await fresh()
      const first = await data.open()
      const key = newSigningKey(1)
      await first.addSigningKey(key, false)
      await first.close()
      const later = await data.open()
      expect(await later.signingKeys()).toEqual([key])
      await later.close()
    })

    test('H8 of processes that create the first one, one succeeds', async () => {
      const { catalog, other } = await openTwo(fresh)
      const keys = [1, 2, 3, 4].map(newSigningKey)
      await Promise.all(keys.map((key, index) => (index % 2 ? catalog : other).addSigningKey(key, true)))
      const stored = await catalog.signingKeys()
      expect(stored).toHaveLength(1)
      expect(keys).toContainEqual(stored[0])
    })

    test('H9 a key is removed once', async () => {
      const catalog = await openOne(fresh)
      const [one, other] = [newSigningKey(1), newSigningKey(2)]
      await catalog.addSigningKey(one, true)
      await catalog.addSigningKey(other, false)
      expect(await catalog.removeSigningKey(one.id)).toBe(true)
      expect(await catalog.removeSigningKey(one.id)).toBe(false)
      expect(await catalog.signingKeys()).toEqual([other])
    })
  })
}
