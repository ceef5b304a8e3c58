import { describe, expect, test } from 'vitest'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { TokenId } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { hashOf, inBlobStore, newBucket, newItems, newServiceToken, newToken } from './samples.ts'

/** The behaviour of every catalog engine with service tokens. */
export function describeServiceTokens(engine: string, fresh: Fresh): void {
  describe(`${engine}: service tokens`, () => {
    test('ST1, ST2 a service token grants its scopes in each bucket that is named, and in no other', async () => {
      const { catalog, other } = await openTwo(fresh)
      const [a, b] = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b')]
      await catalog.addItems(b, inBlobStore(newItems(2)))
      await catalog.addServiceToken(newServiceToken('s', { expiresAt: 1_800_000_000_000 }))
      const own = { tokenId: 's', expiresAt: 1_800_000_000_000, revokedAt: null, lastUsedAt: null }
      const scopes = new Set(['buckets:manage', 'media:read'])
      expect(await other.findServiceGrant(hashOf('s'), null)).toEqual({ ...own, scopes, ofBucket: null })
      for (const [name, bucketId, total] of [
        ['a', a, 0],
        ['b', b, 2],
      ] as const) {
        const found = await other.findServiceGrant(hashOf('s'), name)
        const { revision: _, ...ofToken } = (await other.findGrant(hashOf(name))) ?? expect.unreachable()
        // As a token of the bucket has it; the scopes are those in a bucket.
        expect(found).toMatchObject({
          ...{ ...own, scopes },
          ofBucket: { ...ofToken, ...own, bucketId, total, scopes: new Set(['media:read']) },
        })
      }
      for (const name of ['c', '', 'A', '1/trash', '1/deleted', "a' OR 'a' = 'a"])
        expect(await other.findServiceGrant(hashOf('s'), name)).toMatchObject({
          tokenId: 's',
          ofBucket: null,
        })
    })

    test('ST1 neither statement finds the tokens of the other', async () => {
      const catalog = await openOne(fresh)
      await newBucket(catalog, 'a')
      await catalog.addServiceToken(newServiceToken('s'))
      expect(await catalog.findGrant(hashOf('s'))).toBeNull()
      expect(await catalog.findServiceGrant(hashOf('a'), 'a')).toBeNull()
      expect(await catalog.findServiceGrant(hashOf('b'), 'a')).toBeNull()
    })

    test('ST2 a bucket is refused from the beginning of its deletion on, and a new one of its name is found', async () => {
      const { catalog, other } = await openTwo(fresh)
      const deleted = await newBucket(catalog, 'a')
      await catalog.addItems(deleted, inBlobStore(newItems(3)))
      await catalog.addServiceToken(newServiceToken('s', { scopes: ['tokens:manage'] }))
      const found = async () => (await other.findServiceGrant(hashOf('s'), 'a'))?.ofBucket?.bucketId ?? null
      expect(await found()).toBe(deleted)
      expect(await catalog.deleteBucketChunk(deleted, 1, 5_000)).toMatchObject({ isDeleted: false })
      expect(await found()).toBeNull()
      expect((await other.findServiceGrant(hashOf('s'), `${deleted}/deleted`))?.ofBucket).toBeNull()
      const { bucket: _, ...late } = newToken('late')
      const granting = () => other.grantToken(deleted, 's' as TokenId, late)
      await expect(granting()).rejects.toMatchObject({ code: 'bucket-unknown' })
      while (!(await catalog.deleteBucketChunk(deleted, 1, 5_000)).isDeleted);
      await expect(granting()).rejects.toMatchObject({ code: 'bucket-unknown' })
      expect(await catalog.findToken('late' as TokenId)).toBeNull()
      const again = await newBucket(catalog, 'a')
      expect(again).not.toBe(deleted)
      expect(await found()).toBe(again)
    })

    test('ST6 a service token grants tokens of every bucket until it is revoked', async () => {
      const { catalog, other } = await openTwo(fresh)
      const a = await newBucket(catalog, 'a')
      await catalog.addServiceToken(newServiceToken('s'))
      const granting = (name: string) => {
        const { bucket: _, ...granted } = newToken(name, { scopes: ['media:read'] })
        return catalog.grantToken(a, 's' as TokenId, granted)
      }
      await granting('new')
      expect(await other.findGrant(hashOf('new'))).toMatchObject({ bucketId: a })
      await other.revokeToken('s' as TokenId, 5_000)
      await expect(granting('late')).rejects.toMatchObject({ code: 'token-revoked' })
    })

    test('BK4, T6 a token that was revoked since its request creates no bucket with a token', async () => {
      const { catalog, other } = await openTwo(fresh)
      await catalog.addServiceToken(newServiceToken('s'))
      const create = (name: string) =>
        other.createNewBucket({
          ...{ name, settings: {}, createdAt: 2, token: newToken(name), creation: null },
          grantor: 's' as TokenId,
        })
      expect(await create('valid')).not.toBeNull()
      await catalog.revokeToken('s' as TokenId, 1)
      await expect(create('late')).rejects.toMatchObject({ code: 'token-revoked' })
      expect(await catalog.findBucketNamed('late')).toBeNull()
      expect(await catalog.findGrant(hashOf('late'))).toBeNull()
    })

    test('ST4 it is listed, used, replaced and revoked as other tokens', async () => {
      const { catalog, other } = await openTwo(fresh)
      const a = await newBucket(catalog, 'a')
      const id = 's' as TokenId
      await catalog.addServiceToken(
        newServiceToken('s', { note: 'for the shop', expiresAt: 1_900_000_000_000 }),
      )
      const record = await other.findToken(id)
      expect(record).toMatchObject({
        ...{ id, bucket: null, bucketId: null, scopes: ['buckets:manage', 'media:read'] },
        ...{ note: 'for the shop', limits: null },
      })
      expect(await other.listTokens()).toContainEqual(record)
      expect(await other.listTokens('a')).toHaveLength(1)
      expect(await other.tokensAfter(a, null, 10)).toHaveLength(1)
      await catalog.touchToken(id, 7_000)
      const replace = (name: string, replaces = id, one: Catalog = catalog) =>
        one.rotateServiceToken({
          ...{ id: name as TokenId, hash: hashOf(name), createdAt: 8_000, expiresAt: null },
          ...{ replaces, replacedUntil: 9_000 },
        })
      const replaced = await Promise.all([replace('s1'), replace('s2', id, other), replace('s3')])
      expect(replaced.filter(Boolean)).toHaveLength(1)
      expect(await other.findServiceGrant(hashOf('s'), null)).toMatchObject({
        ...{ lastUsedAt: 7_000, expiresAt: 9_000 },
      })
      const successor = `s${replaced.indexOf(true) + 1}`
      expect(await other.findToken(successor as TokenId)).toMatchObject({
        ...{ bucket: null, name: 's', note: 'for the shop', expiresAt: null },
        scopes: ['buckets:manage', 'media:read'],
      })
      // Neither replaces a token of the other kind.
      expect(await replace('s4', 'a' as TokenId)).toBe(false)
      const ofBucket = { id: 's5' as TokenId, hash: hashOf('s5'), createdAt: 8_000, expiresAt: null }
      const change = { ...ofBucket, replaces: successor as TokenId, replacedUntil: 9_000 }
      expect(await catalog.rotateToken(a, null, change)).toBe(false)
      await other.revokeToken(successor as TokenId, 8_500)
      expect(await catalog.findServiceGrant(hashOf(successor), 'a')).toMatchObject({ revokedAt: 8_500 })
      await other.restoreToken(successor as TokenId)
      expect(await catalog.findServiceGrant(hashOf(successor), 'a')).toMatchObject({ revokedAt: null })
    })
  })
}
