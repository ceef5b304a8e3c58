import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { issueToken, verifyTokenOperation } from '../../src/access/token-operations.ts'
import { defaultScopes, newToken } from '../../src/core/token-rules.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import { openSqliteCatalog } from '../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'

const noon = Date.UTC(2026, 5, 1, 12)

interface Access extends AsyncDisposable {
  readonly catalog: Catalog
  /** A second connection to the same data, as another process has it. */
  another(): Promise<Catalog>
  issue(expiresAt?: number | null): ReturnType<typeof issueToken>
}

async function temporaryAccess(): Promise<Access> {
  const directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-access-'))
  const opened: Catalog[] = []
  const another = async () => {
    const catalog = await openSqliteCatalog({ directory: directory.path, writer: 'direct' })
    opened.push(catalog)
    return catalog
  }
  const catalog = await another()
  return {
    catalog,
    another,
    issue: (expiresAt = null) =>
      issueToken(catalog, { bucket: 'default', name: 'test', scopes: defaultScopes, expiresAt, now: noon }),
    async [Symbol.asyncDispose]() {
      for (const each of opened) await each.close()
      await directory.remove()
    },
  }
}

function verifying(catalog: Catalog, now: () => number) {
  return verifyTokenOperation({
    catalog,
    removeExpired: () => expect.unreachable(),
    now,
    onTouchFailure: (error) => {
      throw error
    },
  })
}

describe('verifying a token', () => {
  test('A6: an issued token is verified with its bucket and scopes', async () => {
    await using access = await temporaryAccess()
    const { token, id } = await access.issue()
    const grant = await verifying(access.catalog, () => noon)(token)
    expect(grant).toMatchObject({ tokenId: id, expiresAt: null, revokedAt: null, total: 0 })
    expect([...grant.scopes].sort()).toEqual([...defaultScopes].sort())
  })

  test('A2, A8: malformed text has another fault than a token that was never issued', async () => {
    await using access = await temporaryAccess()
    const { token } = await access.issue()
    const verify = verifying(access.catalog, () => noon)
    const mistyped = token.slice(0, 20) + (token[20] === 'x' ? 'y' : 'x') + token.slice(21)
    for (const text of ['', 'x', token.slice(0, -1), `${token}x`, ` ${token}`, mistyped, token.toUpperCase()])
      await expect(verify(text)).rejects.toMatchObject({
        code: 'token-malformed',
        message: expect.stringMatching(/cut off or mistyped/),
      })
    await expect(verify(newToken())).rejects.toMatchObject({ code: 'token-unknown' })
  })

  test('A7: a token that another process revokes fails at its next use', async () => {
    await using access = await temporaryAccess()
    const { token, id } = await access.issue()
    const verify = verifying(access.catalog, () => noon)
    await verify(token)
    await (await access.another()).revokeToken(id, noon)
    await expect(verify(token)).rejects.toMatchObject({ code: 'token-revoked' })
  })

  test('A7: a token that another process issues works at its next use', async () => {
    await using access = await temporaryAccess()
    const other = await access.another()
    const verify = verifying(other, () => noon)
    const { token } = await access.issue()
    await verify(token)
  })

  test('A9: a token fails from its time of expiry', async () => {
    await using access = await temporaryAccess()
    const { token } = await access.issue(noon + 1000)
    let now = noon
    const verify = verifying(access.catalog, () => now)
    now = noon + 999
    await verify(token)
    for (now of [noon + 1000, noon + 1001, noon + 1e10])
      await expect(verify(token)).rejects.toMatchObject({
        code: 'token-expired',
        message: expect.stringContaining('2026-06-01T12:00:01.000Z'),
      })
  })

  test('A2: a token that is revoked and expired is reported as revoked', async () => {
    await using access = await temporaryAccess()
    const { token, id } = await access.issue(noon)
    await access.catalog.revokeToken(id, noon)
    await expect(verifying(access.catalog, () => noon)(token)).rejects.toMatchObject({
      code: 'token-revoked',
    })
  })

  test('P3: no message contains the token', async () => {
    await using access = await temporaryAccess()
    const { token, id } = await access.issue(noon)
    const verify = verifying(access.catalog, () => noon)
    for (const text of [token, token.slice(0, -1), newToken()]) {
      const error = await verify(text).catch((reason: unknown) => reason)
      expect(String(error)).not.toContain(text.slice(5))
    }
    await access.catalog.revokeToken(id, noon)
    expect(String(await verify(token).catch((reason: unknown) => reason))).not.toContain(token.slice(5))
  })

  test('the last use of a token is recorded', async () => {
    await using access = await temporaryAccess()
    const { token } = await access.issue()
    const touched = Promise.withResolvers<void>()
    const touchToken: Catalog['touchToken'] = async (...use) => {
      await access.catalog.touchToken(...use)
      touched.resolve()
    }
    await verifying({ ...access.catalog, touchToken }, () => noon)(token)
    await touched.promise
    expect(await access.catalog.listTokens()).toMatchObject([{ lastUsedAt: noon }])
  })

  test('no use is recorded for a token that fails', async () => {
    await using access = await temporaryAccess()
    const { token } = await access.issue(noon)
    const touchToken = () => Promise.reject(new Error('the use was recorded'))
    await expect(verifying({ ...access.catalog, touchToken }, () => noon)(token)).rejects.toThrow('expired')
    expect(await access.catalog.listTokens()).toMatchObject([{ lastUsedAt: null }])
  })
})

describe('issuing a token', () => {
  test('A8: the token is returned once; the catalog stores its name, scopes and times, never the token', async () => {
    await using access = await temporaryAccess()
    const { token, id } = await issueToken(access.catalog, {
      bucket: 'pictures',
      name: 'camera',
      scopes: ['media:write'],
      expiresAt: noon + 1,
      now: noon,
    })
    expect(token).toMatch(/^mbkt_[0-9a-z]{38}$/)
    expect(id).toMatch(/^tok_[0-9a-z]{12}$/)
    const records = await access.catalog.listTokens()
    expect(records).toEqual([
      {
        id,
        bucket: 'pictures',
        bucketId: 1,
        name: 'camera',
        scopes: ['media:write'],
        createdAt: noon,
        expiresAt: noon + 1,
        lastUsedAt: null,
        revokedAt: null,
        note: null,
        limits: null,
      },
    ])
  })

  test('A8: no two tokens are equal', async () => {
    await using access = await temporaryAccess()
    const issued = await Promise.all(Array.from({ length: 50 }, () => access.issue()))
    expect(new Set(issued.map(({ token }) => token)).size).toBe(50)
    expect(new Set(issued.map(({ id }) => id)).size).toBe(50)
  })
})
