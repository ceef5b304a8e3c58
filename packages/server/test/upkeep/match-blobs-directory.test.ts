import { randomInt } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { type BlobsDirectory, BlobsMismatchError } from '../../src/storage/blobs/blobs.ts'
import { openSqliteCatalog } from '../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { matchBlobsDirectory } from '../../src/upkeep/blobs-identity.ts'
import { tempDirectory } from '../storage/catalog/temp-directory.ts'

const advice = { place: 'the place', catalog: '', missing: '', cure: '', identify: () => '' }

/** A store without bytes, whose answers arrive in any order. */
function emptyStore(isShared: boolean) {
  let identity: string | null = null
  const delay = async () => {
    for (let turns = randomInt(4); turns > 0; turns--) await setImmediate()
  }
  const directory: BlobsDirectory = {
    path: 'store',
    advice,
    isShared,
    async readIdentity() {
      await delay()
      return identity
    },
    async writeIdentity(written) {
      await delay()
      identity = written
      await delay()
    },
    readAnnounced: async () => null,
    writeAnnounced: async () => undefined,
    has: async () => false,
    isEmpty: async () => true,
  }
  return { directory, identity: () => identity }
}

async function openThree() {
  const directory = tempDirectory()
  return Promise.all(
    [1, 2, 3].map(async () => {
      const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
      onTestFinished(() => catalog.close())
      return catalog
    }),
  )
}

test('S9 servers that start at the same time on a new catalog and a shared store agree on its identity', async () => {
  for (let round = 0; round < 20; round++) {
    const catalogs = await openThree()
    const { directory, identity } = emptyStore(true)
    await Promise.all(catalogs.map((catalog) => matchBlobsDirectory({ catalog, directory })))
    expect(await catalogs[0]?.blobsIdentity()).toBe(identity())
  }
})

test('S9 of servers that start at the same time with directories of their own, one starts', async () => {
  const catalogs = await openThree()
  const starts = await Promise.allSettled(
    catalogs.map((catalog) => matchBlobsDirectory({ catalog, directory: emptyStore(false).directory })),
  )
  const reasons = starts.flatMap((start) => (start.status === 'rejected' ? [start.reason] : []))
  expect(reasons).toHaveLength(2)
  for (const reason of reasons) expect(reason).toBeInstanceOf(BlobsMismatchError)
})
