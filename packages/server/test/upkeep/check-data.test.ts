import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { BlobAudit } from '../../src/blobs/audit.ts'
import { openDiskAudit } from '../../src/blobs/disk/disk-audit.ts'
import type { CatalogAudit } from '../../src/catalog/audit.ts'
import { openSqliteAudit } from '../../src/catalog/sqlite/audit.ts'
import { checkData } from '../../src/upkeep/check-data.ts'
import { receiveBytes } from '../blobs/blob-contract.ts'
import { inBlobStore, newItem } from '../catalog/samples.ts'
import { type TemporaryMedia, temporaryMedia } from '../media/temporary-media.ts'

interface Steps {
  /** Whether a server holds the lock of the data. */
  readonly served?: boolean
  /** Runs during the grace period. */
  readonly duringWait?: () => Promise<unknown>
  readonly held?: boolean
  readonly audit?: (audit: CatalogAudit) => Partial<CatalogAudit>
  readonly blobAudit?: (audit: BlobAudit) => Partial<BlobAudit>
}

/** Repairs, with hooks in the steps that race with a server. */
async function repair(media: TemporaryMedia, steps: Steps = {}) {
  const audit = await openSqliteAudit(media.disk.directory)
  onTestFinished(() => audit.close())
  const blobAudit = await openDiskAudit(media.disk)
  const report = await checkData({
    ...media,
    isBackupRunning: () => steps.held ?? false,
    audit: { ...audit, ...steps.audit?.(audit) },
    blobAudit: { ...blobAudit, ...steps.blobAudit?.(blobAudit) },
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
async function beforeCommit(media: TemporaryMedia) {
  const received = await receiveBytes(media.blobs, Buffer.from('late'))
  const item = newItem({ id: received.id, size: received.size, sha256: received.sha256 })
  await media.blobs.commit([received])
  const bucketId = await media.bucket('default')
  return { item, commit: () => media.catalog.addMedia(bucketId, inBlobStore([item])) }
}

const lostAndFound = (media: TemporaryMedia) =>
  readdir(join(media.disk.directory, 'lost+found')).catch(() => [])

test('F2 an upload that commits during the grace period is not an orphan', async () => {
  await using media = await temporaryMedia()
  const { item, commit } = await beforeCommit(media)
  expect(await repair(media, { served: true, duringWait: commit })).toEqual([])
  expect((await media.blobs.open(item.id))?.size).toBe(4)
  expect(await lostAndFound(media)).toEqual([])
})

test('F2 an upload that commits between the last check and the move keeps its bytes', async () => {
  await using media = await temporaryMedia()
  const { item, commit } = await beforeCommit(media)
  const late = (audit: CatalogAudit) => ({
    async retire(ids: Parameters<CatalogAudit['retire']>[0]) {
      await commit()
      return audit.retire(ids)
    },
  })
  expect(await repair(media, { served: true, audit: late })).toEqual([])
  expect((await media.blobs.open(item.id))?.size).toBe(4)
})

test('F2 a commit after its id was retired fails: no item is listed whose bytes were moved', async () => {
  await using media = await temporaryMedia()
  const { item, commit } = await beforeCommit(media)
  await media.catalog.clearIntents([item.id])
  let committed: Promise<unknown> | undefined
  const late = (audit: BlobAudit) => ({
    async quarantine(found: Parameters<BlobAudit['quarantine']>[0]) {
      committed = commit()
      await committed.catch(() => undefined)
      return audit.quarantine(found)
    },
  })
  expect(await repair(media, { served: true, blobAudit: late })).toEqual([['bytes-orphaned', 1, 1]])
  await expect(committed).rejects.toThrow()
  expect(await media.catalog.media(item.id)).toBeNull()
  expect(await lostAndFound(media)).toEqual([expect.stringContaining(item.id)])
})

test('F2 bytes of an upload in progress stay while a server runs, and are moved when none does', async () => {
  await using media = await temporaryMedia()
  const { item } = await beforeCommit(media)
  expect(await repair(media, { served: true })).toEqual([])
  expect((await media.blobs.open(item.id))?.size).toBe(4)
  expect(await repair(media)).toEqual([['bytes-orphaned', 1, 1]])
})

test('F2 temporary files are left while a server runs, and moved when none does', async () => {
  await using media = await temporaryMedia()
  await receiveBytes(media.blobs, Buffer.from('half'))
  expect(await repair(media, { served: true })).toEqual([])
  expect(await media.disk.temporary()).toHaveLength(1)
  expect(await repair(media)).toEqual([['temporary-stale', 1, 1]])
  expect(await media.disk.temporary()).toEqual([])
})

test('F6 bytes that a backup holds are not a fault and are not removed', async () => {
  await using media = await temporaryMedia()
  const item = await media.store('text')
  await media.catalog.removeMedia(item.bucketId, [item.id])
  expect(await repair(media, { held: true })).toEqual([])
  expect(await media.disk.stored()).toHaveLength(1)
  expect(await repair(media)).toEqual([['tombstone-with-bytes', 1, 1]])
  expect([await media.disk.stored(), await media.catalog.tombstones()]).toEqual([[], []])
})
