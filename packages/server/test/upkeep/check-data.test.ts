import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { BlobInspection } from '../../src/storage/blobs/blobs.ts'
import { openDiskInspection } from '../../src/storage/blobs/disk/disk-inspection.ts'
import type { CatalogInspection } from '../../src/storage/catalog/checks/inspection.ts'
import { openSqliteInspection } from '../../src/storage/catalog/engines/sqlite/sqlite-inspection.ts'
import { checkData } from '../../src/upkeep/fsck.ts'
import { receiveBytes } from '../storage/blobs/blob-contract.ts'
import { inBlobStore, newItem } from '../storage/catalog/samples.ts'
import { type TemporaryData, temporaryData } from '../uploads/temporary-media.ts'

interface Steps {
  /** Whether a server holds the lock of the data. */
  readonly served?: boolean
  /** Runs during the grace period. */
  readonly duringWait?: () => Promise<unknown>
  readonly held?: boolean
  readonly inspection?: (inspection: CatalogInspection) => Partial<CatalogInspection>
  readonly blobInspection?: (inspection: BlobInspection) => Partial<BlobInspection>
}

/** Repairs, with hooks in the steps that race with a server. */
async function repair(data: TemporaryData, steps: Steps = {}) {
  const inspection = await openSqliteInspection(data.disk.directory)
  onTestFinished(() => inspection.close())
  const blobInspection = await openDiskInspection(data.disk)
  const report = await checkData({
    ...data,
    isBackupRunning: () => steps.held ?? false,
    inspection: { ...inspection, ...steps.inspection?.(inspection) },
    blobInspection: {
      entries: () => blobInspection.entries(),
      exists: (entry) => blobInspection.exists(entry),
      quarantine: (entry) => blobInspection.quarantine(entry),
      setAside: (name, bytes) => blobInspection.setAside(name, bytes),
      ...steps.blobInspection?.(blobInspection),
    },
    quiescence: {
      lock: () => (steps.served ? null : { release() {} }),
      wait: async () => void (await steps.duringWait?.()),
    },
    repair: true,
    verifyBytes: false,
    onItem() {},
  })
  return report.findings.map(({ code, count, repaired }) => [code, count, repaired])
}

/** Bytes stored under an id, as before the commit of an upload. */
async function beforeCommit(data: TemporaryData) {
  const received = await receiveBytes(data.blobs, Buffer.from('late'))
  const item = newItem({ id: received.id, size: received.size, sha256: received.sha256 })
  await data.blobs.commit([received])
  const bucketId = await data.bucket('default')
  return { item, commit: () => data.catalog.addItems(bucketId, inBlobStore([item])) }
}

const lostAndFound = (data: TemporaryData) => readdir(join(data.disk.directory, 'lost+found')).catch(() => [])

test('F2 an upload that commits during the grace period is not an orphan', async () => {
  await using data = await temporaryData()
  const { item, commit } = await beforeCommit(data)
  expect(await repair(data, { served: true, duringWait: commit })).toEqual([])
  expect((await data.blobs.open(item.id))?.size).toBe(4)
  expect(await lostAndFound(data)).toEqual([])
})

test('F2 an upload that commits between the last check and the move keeps its bytes', async () => {
  await using data = await temporaryData()
  const { item, commit } = await beforeCommit(data)
  const late = (inspection: CatalogInspection) => ({
    async retire(ids: Parameters<CatalogInspection['retire']>[0]) {
      await commit()
      return inspection.retire(ids)
    },
  })
  expect(await repair(data, { served: true, inspection: late })).toEqual([])
  expect((await data.blobs.open(item.id))?.size).toBe(4)
})

test('F2 a commit after its id was retired fails: no item is listed whose bytes were moved', async () => {
  await using data = await temporaryData()
  const { item, commit } = await beforeCommit(data)
  await data.catalog.clearIntents([item.id])
  let committed: Promise<unknown> | undefined
  const late = (inspection: BlobInspection) => ({
    async quarantine(found: Parameters<BlobInspection['quarantine']>[0]) {
      committed = commit()
      await committed.catch(() => undefined)
      return inspection.quarantine(found)
    },
  })
  expect(await repair(data, { served: true, blobInspection: late })).toEqual([['bytes-orphaned', 1, 1]])
  await expect(committed).rejects.toThrow()
  expect(await data.catalog.item(item.id)).toBeNull()
  expect(await lostAndFound(data)).toEqual([expect.stringContaining(item.id)])
})

test('F2 bytes of an upload in progress stay while a server runs, and are moved when none does', async () => {
  await using data = await temporaryData()
  const { item } = await beforeCommit(data)
  expect(await repair(data, { served: true })).toEqual([])
  expect((await data.blobs.open(item.id))?.size).toBe(4)
  expect(await repair(data)).toEqual([['bytes-orphaned', 1, 1]])
})

test('F2 temporary files are left while a server runs, and moved when none does', async () => {
  await using data = await temporaryData()
  await receiveBytes(data.blobs, Buffer.from('half'))
  expect(await repair(data, { served: true })).toEqual([])
  expect(await data.disk.temporary()).toHaveLength(1)
  expect(await repair(data)).toEqual([['temporary-stale', 1, 1]])
  expect(await data.disk.temporary()).toEqual([])
})

test('F6 bytes that a backup holds are not a fault and are not removed', async () => {
  await using data = await temporaryData()
  const item = await data.store('text')
  await data.catalog.removeItems(item.bucketId, [item.id])
  expect(await repair(data, { held: true })).toEqual([])
  expect(await data.disk.stored()).toHaveLength(1)
  expect(await repair(data)).toEqual([['tombstone-with-bytes', 1, 1]])
  expect([await data.disk.stored(), await data.catalog.listTombstones()]).toEqual([[], []])
})
