import { randomBytes } from 'node:crypto'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createDirectorySync } from '../../src/blobs/disk/directory-sync.ts'
import { openDiskBlobs } from '../../src/blobs/disk/disk-blobs.ts'
import { nodeFiles } from '../../src/blobs/disk/files.ts'
import { openIntents } from '../../src/blobs/disk/intents.ts'
import { newMediaId, shardOf } from '../../src/core/media-id.ts'
import { receiveBytes } from './blob-contract.ts'
import { type TemporaryStore, temporaryStore } from './temporary-store.ts'

const server = { thread: { onFailure: (error: Error): void => expect.unreachable(error.message) } }

const intentsIn = ({ directory }: TemporaryStore) => readdir(join(directory, 'pending'))

test('S8 a file is an orphan candidate of the next start until its row is committed', async () => {
  await using opened = await temporaryStore(server)
  const { store, directory } = opened
  const [committed, crashed] = [newMediaId(), newMediaId()]
  for (const id of [committed, crashed]) await store.commit(await receiveBytes(store, randomBytes(10)), id)
  expect((await intentsIn(opened)).toSorted()).toEqual([committed, crashed].toSorted())
  store.markCommitted([committed])
  await expect.poll(() => intentsIn(opened)).toEqual([crashed])
  expect(await store.orphanCandidates()).toEqual([])
  const next = await openDiskBlobs({ directory, ...server })
  expect(await next.orphanCandidates()).toEqual([crashed])
  next.clearOrphanCandidates()
  await next.close()
  expect(await intentsIn(opened)).toEqual([])
})

test('S8 the removal of a file removes its intent', async () => {
  await using opened = await temporaryStore(server)
  const id = newMediaId()
  await opened.store.commit(await receiveBytes(opened.store, randomBytes(10)), id)
  await opened.store.remove(id)
  await expect.poll(() => intentsIn(opened)).toEqual([])
})

test('S8, O8 a start handles the records of earlier versions, which name directories', async () => {
  await using opened = await temporaryStore(server)
  const { store, directory } = opened
  const id = newMediaId()
  await store.commit(await receiveBytes(store, randomBytes(10)), id)
  store.markCommitted([id])
  await expect.poll(() => intentsIn(opened)).toEqual([])
  const missing = shardOf(id) === '00' ? '11' : '00'
  for (const name of [shardOf(id), missing]) await writeFile(join(directory, 'pending', name), '')
  const next = await openDiskBlobs({ directory, ...server })
  expect(await next.orphanCandidates()).toEqual([id])
  next.clearOrphanCandidates()
  await next.close()
  expect(await intentsIn(opened)).toEqual([])
})

test('S8 an intent whose sync failed is removed, and the next attempt syncs a new one', async () => {
  await using opened = await temporaryStore()
  const directory = join(opened.directory, 'pending')
  await mkdir(directory)
  let failures = 1
  const directorySync = createDirectorySync(nodeFiles)
  const sync = async (path: string) => {
    if (failures-- > 0) throw new Error('planted')
    await directorySync(path)
  }
  const intents = await openIntents({ directory, root: directory, files: nodeFiles, sync })
  const id = newMediaId()
  await expect(intents.add(id)).rejects.toThrow('planted')
  expect(await readdir(directory)).toEqual([])
  await intents.add(id)
  // Another attempt to commit the same upload.
  await intents.add(id)
  expect(await readdir(directory)).toEqual([id])
  intents.delete(id)
  intents.delete(id)
  await intents.settled()
  expect(await readdir(directory)).toEqual([])
})
