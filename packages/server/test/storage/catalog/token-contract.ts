import { describe, expect, test } from 'vitest'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { TokenId } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { hashOf, newItem, newToken, newUpload, withBytes } from './samples.ts'

/** The behaviour of every catalog engine with tokens. */
export function describeTokens(engine: string, fresh: Fresh): void {
  describe(`${engine}: tokens`, () => {
    test('a grant has the data of the token and of its bucket', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a', { expiresAt: 1_800_000_000_000 }))
      const grant = await catalog.findGrant(hashOf('a'))
      expect(grant).toEqual({
        tokenId: 'a',
        bucketId: expect.any(Number),
        scopes: new Set(['media:read', 'media:write']),
        expiresAt: 1_800_000_000_000,
        revokedAt: null,
        lastUsedAt: null,
        subject: null,
        revision: 0,
        expired: 0,
        removesMetadata: false,
        itemDays: null,
        limits: null,
        fileLimits: null,
        nextExpiry: null,
        total: 0,
        isPrivate: false,
        signsPages: false,
        publicKeys: false,
        urlUploads: true,
        pictures: null,
      })
    })

    test('J5 the row of a user is added once, also by several processes, with the bucket or without', async () => {
      const { catalog, other } = await openTwo(fresh)
      const user = (id: string, bucket = 'new') => newToken(id, { hash: hashOf('user'), scopes: [], bucket })
      expect(await catalog.addUser(user('a'), null)).toBe(false)
      expect(await catalog.findBucketNamed('new')).toBeNull()
      const added = ['b', 'c', 'd', 'e'].map((id, at) =>
        (at % 2 ? catalog : other).addUser(user(id), { maxItems: 5 }),
      )
      expect(await Promise.all(added)).toEqual([true, true, true, true])
      expect(await catalog.listTokens()).toHaveLength(1)
      expect(await catalog.addUser(user('f'), null)).toBe(true)
      expect((await catalog.findGrant(hashOf('user')))?.scopes).toEqual(new Set())
      expect(await catalog.findBucketNamed('new')).toMatchObject({
        maxItems: 5,
        maxBytes: null,
        trashDays: 0,
      })
      expect(await catalog.listTokens('new')).toHaveLength(1)
    })

    test('T10 concurrent uploads of several processes stay within the limits of a token', async () => {
      const { catalog, other } = await openTwo(fresh)
      const limits = { maxItems: 5, maxBytes: null, maxFileSize: null, types: ['image/*'], itemDays: 3 }
      await catalog.addToken(newToken('a', { limits, note: 'for you' }))
      const grant = await catalog.findGrant(hashOf('a'))
      expect(grant).toMatchObject({ limits: { ...limits, id: 'a' }, itemDays: 3 })
      const bucketId = await bucketOf(catalog, 'a')
      const limitedBy = 'a' as TokenId
      const requestOf = (key: string) => ({
        ...{ tokenId: limitedBy, key, fingerprint: hashOf(key) },
        ...{ now: 1_000, expiresAt: 9_000 },
      })
      const ways = [
        (one: Catalog, _index: number) => one.addLimitedItems(bucketId, [withBytes(newItem())], limitedBy),
        (one: Catalog, index: number) =>
          one.addItemsOnce(bucketId, [withBytes(newItem())], requestOf(`key ${index}`), undefined, limitedBy),
        (one: Catalog, _index: number) => one.createUpload(newUpload(bucketId, { limitedBy })),
      ]
      const results = await Promise.allSettled(
        Array.from({ length: 18 }, (_, index) =>
          ways[index % ways.length]?.(index % 2 ? catalog : other, index),
        ),
      )
      const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
      expect(refused).toHaveLength(13)
      for (const reason of refused) expect(reason).toMatchObject({ code: 'token-limit-exceeded' })
      const { used, reserved } = (await catalog.findToken(limitedBy))?.limits ?? expect.unreachable()
      expect(used.items + reserved.items).toBe(5)
      expect(await catalog.findToken(limitedBy)).toMatchObject({ note: 'for you' })
      for (const { id } of await catalog.unfinishedUploads()) await catalog.removeUpload(id)
      expect((await catalog.findToken(limitedBy))?.limits?.reserved).toEqual({ items: 0, bytes: 0 })
    })

    test('T10 a repeated request counts once, and a finished upload as what it has stored', async () => {
      const catalog = await openOne(fresh)
      const limits = { maxItems: 3, maxBytes: 10_000, maxFileSize: null, types: null, itemDays: null }
      await catalog.addToken(newToken('a', { limits }))
      const bucketId = await bucketOf(catalog, 'a')
      const limitedBy = 'a' as TokenId
      const request = { tokenId: limitedBy, key: 'k', fingerprint: hashOf('k'), now: 1_000, expiresAt: 9_000 }
      const item = newItem()
      for (const _ of [1, 2])
        await catalog.addItemsOnce(bucketId, [withBytes(item)], request, undefined, limitedBy)
      const upload = newUpload(bucketId, { limitedBy, length: 600 })
      await catalog.createUpload(upload)
      const state = async () => (await catalog.findToken(limitedBy))?.limits
      expect(await state()).toMatchObject({
        used: { items: 1, bytes: item.size },
        reserved: { items: 1, bytes: 600 },
      })
      const stored = { ...newItem(), id: upload.itemId, size: 500 }
      await catalog.finishUpload(upload.id, withBytes(stored), 9_000, undefined, 600)
      expect(await state()).toMatchObject({
        used: { items: 2, bytes: item.size + 500 },
        reserved: { items: 0, bytes: 0 },
      })
    })

    test('an unknown hash has no grant', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a'))
      expect(await catalog.findGrant(hashOf('b'))).toBeNull()
    })

    test('a token without scopes grants none', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a', { scopes: [] }))
      expect((await catalog.findGrant(hashOf('a')))?.scopes).toEqual(new Set())
    })

    test('tokens of one bucket name share a bucket', async () => {
      const catalog = await openOne(fresh)
      expect(await catalog.addToken(newToken('a'))).toBe(true)
      expect(await catalog.addToken(newToken('b'))).toBe(false)
      expect(await catalog.addToken(newToken('c', { bucket: 'work' }))).toBe(true)
      const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => catalog.findGrant(hashOf(name))))
      expect(b?.bucketId).toBe(a?.bucketId)
      expect(c?.bucketId).not.toBe(a?.bucketId)
    })

    test('an existing hash or id is refused, and its bucket is not created', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a'))
      await expect(catalog.addToken(newToken('b', { hash: hashOf('a'), bucket: 'new' }))).rejects.toThrow()
      await expect(catalog.addToken(newToken('a', { hash: hashOf('b'), bucket: 'new' }))).rejects.toThrow()
      expect(await catalog.listTokens()).toHaveLength(1)
      await catalog.addToken(newToken('c'))
      expect(await catalog.listTokens('new')).toEqual([])
    })

    test('A7 a token revoked in another process is revoked in the next lookup', async () => {
      const { catalog, other } = await openTwo(fresh)
      await catalog.addToken(newToken('a'))
      expect((await catalog.findGrant(hashOf('a')))?.revokedAt).toBeNull()
      expect(await other.revokeToken('a' as TokenId, 5_000)).toBe(true)
      expect((await catalog.findGrant(hashOf('a')))?.revokedAt).toBe(5_000)
    })

    test('a second revocation keeps the time of the first; an unknown token cannot be revoked', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a'))
      expect(await catalog.revokeToken('a' as TokenId, 5_000)).toBe(true)
      expect(await catalog.revokeToken('a' as TokenId, 6_000)).toBe(true)
      expect((await catalog.findGrant(hashOf('a')))?.revokedAt).toBe(5_000)
      expect(await catalog.revokeToken('b' as TokenId, 5_000)).toBe(false)
    })

    test('a use is recorded', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a'))
      await catalog.touchToken('a' as TokenId, 7_000)
      expect((await catalog.findGrant(hashOf('a')))?.lastUsedAt).toBe(7_000)
    })

    test('a token is found by its id, equal to its entry in the list', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a', { scopes: [], expiresAt: 9_000 }))
      await catalog.addToken(newToken('b'))
      expect(await catalog.findToken('a' as TokenId)).toEqual((await catalog.listTokens())[0])
      expect(await catalog.findToken('c' as TokenId)).toBeNull()
    })

    test('tokens are listed oldest first, of all buckets or of one, without their hashes', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('young', { createdAt: 3_000 }))
      await catalog.addToken(newToken('work', { bucket: 'work', createdAt: 2_000, expiresAt: 9_000 }))
      await catalog.addToken(newToken('old', { createdAt: 1_000 }))
      expect((await catalog.listTokens()).map((token) => token.name)).toEqual(['old', 'work', 'young'])
      expect((await catalog.listTokens('holiday')).map((token) => token.name)).toEqual(['old', 'young'])
      expect(await catalog.listTokens('work')).toEqual([
        {
          id: 'work',
          bucketId: expect.any(Number),
          bucket: 'work',
          name: 'work',
          scopes: ['media:read', 'media:write'],
          createdAt: 2_000,
          expiresAt: 9_000,
          lastUsedAt: null,
          note: null,
          limits: null,
          revokedAt: null,
        },
      ])
      expect(await catalog.listTokens('nobody')).toEqual([])
    })

    test('T6 a token grants tokens of its bucket until it is revoked, also in another process', async () => {
      const { catalog, other } = await openTwo(fresh)
      await catalog.addToken(newToken('a'))
      await catalog.addToken(newToken('stranger', { bucket: 'work' }))
      const bucketId = await bucketOf(catalog, 'a')
      const { bucket: _, ...granted } = newToken('b', { scopes: ['media:read'], expiresAt: 9_000 })
      await catalog.grantToken(bucketId, 'a' as TokenId, granted)
      expect(await catalog.findToken('b' as TokenId)).toMatchObject({
        bucket: 'holiday',
        name: 'b',
        scopes: ['media:read'],
        expiresAt: 9_000,
      })
      const { bucket: __, ...another } = newToken('c')
      const refused = { code: 'token-revoked' }
      await expect(catalog.grantToken(bucketId, 'stranger' as TokenId, another)).rejects.toMatchObject(
        refused,
      )
      // The token was valid when its request arrived.
      await catalog.addToken(newToken('expired', { expiresAt: another.createdAt }))
      await expect(catalog.grantToken(bucketId, 'expired' as TokenId, another)).rejects.toMatchObject(refused)
      await other.revokeToken('a' as TokenId, 5_000)
      await expect(catalog.grantToken(bucketId, 'a' as TokenId, another)).rejects.toMatchObject(refused)
      expect(await catalog.findToken('c' as TokenId)).toBeNull()
    })

    test('T8 a token has a successor while it is valid, and then expires at the end of the overlap', async () => {
      const catalog = await openOne(fresh)
      const owner = 'owner' as TokenId
      await catalog.addToken(newToken('owner'))
      const bucketId = await bucketOf(catalog, 'owner')
      const rotate = (id: string, name: string, replacedUntil: number, from = bucketId) =>
        catalog.rotateToken(from, owner, {
          ...{ id: name as TokenId, hash: hashOf(name), createdAt: 5_000, expiresAt: 90_000 },
          ...{ replaces: id as TokenId, replacedUntil },
        })
      await catalog.addToken(newToken('a', { scopes: ['media:read'], createdAt: 1_000, expiresAt: 8_000 }))
      expect(await rotate('a', 'a2', 7_000)).toBe(true)
      const [first, second] = [
        await catalog.findToken('a' as TokenId),
        await catalog.findToken('a2' as TokenId),
      ]
      expect(first?.expiresAt).toBe(7_000)
      expect(second).toMatchObject({ name: 'a', scopes: ['media:read'], createdAt: 5_000, expiresAt: 90_000 })
      expect((await catalog.findGrant(hashOf('a2')))?.bucketId).toBe(bucketId)
      expect(await rotate('a', 'a3', 20_000)).toBe(false)
      // An overlap never prolongs a token.
      await catalog.addToken(newToken('short', { expiresAt: 8_000 }))
      expect(await rotate('short', 'short2', 20_000)).toBe(true)
      expect((await catalog.findToken('short' as TokenId))?.expiresAt).toBe(8_000)

      await catalog.addToken(newToken('expired', { expiresAt: 5_000 }))
      await catalog.addToken(newToken('revoked'))
      await catalog.revokeToken('revoked' as TokenId, 4_000)
      await catalog.addToken(newToken('theirs', { bucket: 'work' }))
      for (const id of ['expired', 'revoked', 'theirs', 'unknown']) {
        expect(await rotate(id, `${id}2`, 20_000)).toBe(false)
        expect(await catalog.findToken(`${id}2` as TokenId)).toBeNull()
      }
      expect((await catalog.findToken('theirs' as TokenId))?.expiresAt).toBeNull()
      await catalog.revokeToken(owner, 5_000)
      await expect(rotate('a2', 'b', 9_000)).rejects.toMatchObject({ code: 'token-revoked' })
    })

    test('T8 of rotations of a token at once by processes with different clocks, one makes a successor', async () => {
      const { catalog, other } = await openTwo(fresh)
      await catalog.addToken(newToken('owner'))
      await catalog.addToken(newToken('a'))
      const bucketId = await bucketOf(catalog, 'owner')
      const rotations = await Promise.all(
        [catalog, other, catalog, other].map((one, index) =>
          one.rotateToken(bucketId, 'owner' as TokenId, {
            ...{
              id: `a${index}` as TokenId,
              hash: hashOf(`a${index}`),
              createdAt: 5_000 - index,
              expiresAt: null,
            },
            ...{ replaces: 'a' as TokenId, replacedUntil: 5_000 + (index % 2) * 60_000 },
          }),
        ),
      )
      expect(rotations.filter(Boolean)).toHaveLength(1)
    })

    test('T4 tokens of one bucket are listed after one of them', async () => {
      const catalog = await openOne(fresh)
      for (const name of ['c', 'a', 'b']) await catalog.addToken(newToken(name))
      await catalog.addToken(newToken('theirs', { bucket: 'work' }))
      const bucketId = await bucketOf(catalog, 'a')
      const after = async (id: string | null, limit: number) =>
        (await catalog.tokensAfter(bucketId, id as TokenId | null, limit)).map(({ name }) => name)
      expect(await after(null, 10)).toEqual(['c', 'a', 'b'])
      expect(await after(null, 2)).toEqual(['c', 'a'])
      expect(await after('a', 2)).toEqual(['b'])
    })
  })
}

const bucketOf = async (catalog: Catalog, name: string) =>
  (await catalog.findGrant(hashOf(name)))?.bucketId ?? expect.unreachable()
