import { describe, expect, test } from 'vitest'
import type { TokenId } from '../../src/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { hashOf, newToken } from './samples.ts'

/** The behaviour of every catalog engine with tokens. */
export function describeTokens(engine: string, fresh: Fresh): void {
  describe(`${engine}: tokens`, () => {
    test('a grant has the data of the token and of its bucket', async () => {
      const catalog = await openOne(fresh)
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
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a'))
      expect(await catalog.authorise(hashOf('b'))).toBeNull()
    })

    test('a token without scopes grants none', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a', { scopes: [] }))
      expect((await catalog.authorise(hashOf('a')))?.scopes).toEqual(new Set())
    })

    test('tokens of one bucket name share a bucket', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a'))
      await catalog.addToken(newToken('b'))
      await catalog.addToken(newToken('c', { bucket: 'work' }))
      const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => catalog.authorise(hashOf(name))))
      expect(b?.bucketId).toBe(a?.bucketId)
      expect(c?.bucketId).not.toBe(a?.bucketId)
    })

    test('an existing hash or id is refused, and its bucket is not created', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a'))
      await expect(catalog.addToken(newToken('b', { hash: hashOf('a'), bucket: 'new' }))).rejects.toThrow()
      await expect(catalog.addToken(newToken('a', { hash: hashOf('b'), bucket: 'new' }))).rejects.toThrow()
      expect(await catalog.tokens()).toHaveLength(1)
      await catalog.addToken(newToken('c'))
      expect(await catalog.tokens('new')).toEqual([])
    })

    test('A7 a token revoked in another process is revoked in the next authorisation', async () => {
      const { catalog, other } = await openTwo(fresh)
      await catalog.addToken(newToken('a'))
      expect((await catalog.authorise(hashOf('a')))?.revokedAt).toBeNull()
      expect(await other.revokeToken('a' as TokenId, 5_000)).toBe(true)
      expect((await catalog.authorise(hashOf('a')))?.revokedAt).toBe(5_000)
    })

    test('a second revocation keeps the time of the first; an unknown token cannot be revoked', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a'))
      expect(await catalog.revokeToken('a' as TokenId, 5_000)).toBe(true)
      expect(await catalog.revokeToken('a' as TokenId, 6_000)).toBe(true)
      expect((await catalog.authorise(hashOf('a')))?.revokedAt).toBe(5_000)
      expect(await catalog.revokeToken('b' as TokenId, 5_000)).toBe(false)
    })

    test('a use is recorded', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a'))
      await catalog.touchToken('a' as TokenId, 7_000)
      expect((await catalog.authorise(hashOf('a')))?.lastUsedAt).toBe(7_000)
    })

    test('a token is found by its id, equal to its entry in the list', async () => {
      const catalog = await openOne(fresh)
      await catalog.addToken(newToken('a', { scopes: [], expiresAt: 9_000 }))
      await catalog.addToken(newToken('b'))
      expect(await catalog.token('a' as TokenId)).toEqual((await catalog.tokens())[0])
      expect(await catalog.token('c' as TokenId)).toBeNull()
    })

    test('tokens are listed oldest first, of all buckets or of one, without their hashes', async () => {
      const catalog = await openOne(fresh)
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
}
