import { expect, onTestFinished, test, vi } from 'vitest'
import { commitBatch } from '../../src/catalog/sqlite/batch.ts'
import { prepareChanges } from '../../src/catalog/sqlite/changes.ts'
import { openConnection } from '../../src/catalog/sqlite/connection.ts'
import { openDataDirectory } from '../../src/catalog/sqlite/data-directory.ts'
import { prepareLocateItem } from '../../src/catalog/sqlite/item-locations.ts'
import { prepareReads } from '../../src/catalog/sqlite/reads.ts'
import { untilChanged } from '../../src/catalog/sqlite/unchanged-grants.ts'
import { newToken } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

function opened() {
  const directory = tempDirectory()
  const writing = openDataDirectory(directory)
  const db = openConnection(directory)
  onTestFinished(() => {
    writing.close()
    if (db.isOpen) db.close()
  })
  const functions = prepareChanges(writing)
  const authorise = vi.fn(prepareReads(db, prepareLocateItem(db)).authorise)
  return {
    apply: (...changes: Parameters<typeof commitBatch>[2]) => commitBatch(writing, functions, changes),
    db,
    authorise,
    cached: untilChanged(db, authorise),
  }
}

test('a grant is read once until another connection commits', () => {
  const { apply, authorise, cached } = opened()
  const [one, other] = [newToken('a'), newToken('b')]
  apply({ kind: 'add-token', input: one }, { kind: 'add-token', input: other })
  for (let turn = 0; turn < 3; turn += 1) {
    expect(cached(one.hash, true)).toMatchObject({ tokenId: one.id, revokedAt: null })
    expect(cached(other.hash, false)).toMatchObject({ tokenId: other.id })
  }
  expect(authorise).toHaveBeenCalledTimes(2)
})

test('A7 a revocation of another connection holds from the next turn', () => {
  const { apply, cached } = opened()
  const token = newToken('a')
  expect(cached(token.hash, true)).toBeNull()
  apply({ kind: 'add-token', input: token })
  expect(cached(token.hash, true)).toMatchObject({ revokedAt: null })
  apply({ kind: 'revoke-token', input: { id: token.id, at: 5 } })
  expect(cached(token.hash, true)).toMatchObject({ revokedAt: 5 })
})

test('a version that cannot be read leaves no grant of an earlier one', () => {
  const { apply, db, authorise, cached } = opened()
  const token = newToken('a')
  apply({ kind: 'add-token', input: token })
  cached(token.hash, true)
  db.close()
  expect(() => cached(token.hash, true)).toThrow()
  authorise.mockReturnValue(null)
  expect(cached(token.hash, false)).toBeNull()
})
