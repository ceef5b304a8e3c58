import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { stateFiles, uploadStates } from '../../../cli/src/upload-state.ts'
import { newItemId } from '../../src/core/ids.ts'
import { DiskBlobsDirectory } from '../../src/storage/blobs/disk/blobs-directory.ts'
import { ServerVariants } from '../../src/storage/blobs/disk/variant-database.ts'
import {
  acquireBackupHold,
  acquireDataLock,
  acquireWorkerLock,
  watchBackupHold,
} from '../../src/storage/catalog/engines/sqlite/locks.ts'
import { openBackupDirectory } from '../../src/upkeep/backup.ts'
import { beginRestore, markDirectory } from '../../src/upkeep/restore.ts'
import { tempDirectory } from './catalog/temp-directory.ts'

/** The fixed names that the service writes, and what writes them. */
const writers: readonly [name: string, write: (directory: string) => unknown][] = [
  ['backup.json.new', (directory) => openBackupDirectory(directory, join(directory, '..', 'data'), null)],
  ['restoring.json', markDirectory],
  ['restoring.json.new', (directory) => beginRestore(directory, 'hash')],
  ['restoring', continueRestore],
  ['blobs', (directory) => new DiskBlobsDirectory(directory).writeIdentity('identity')],
  ['blobs/.identity', (directory) => new DiskBlobsDirectory(directory).writeIdentity('identity')],
  ['blobs/.identity.new', (directory) => new DiskBlobsDirectory(directory).writeIdentity('identity')],
  ['lock.db', (directory) => acquireDataLock(directory).release()],
  ['workers.db', (directory) => acquireDataLock(directory).release()],
  ['workers.db', (directory) => acquireWorkerLock(directory).release()],
  ['hold.db', (directory) => acquireBackupHold(directory).release()],
  ['hold.db', (directory) => watchBackupHold(directory).close()],
  ['variants.db', storeVariant],
  [createHash('sha256').update('key').digest('hex'), storeState],
]

async function continueRestore(directory: string): Promise<void> {
  await writeFile(join(directory, 'restoring.json'), JSON.stringify({ backup: 'hash', result: null }))
  await beginRestore(directory, 'hash')
  await writeFile(join(directory, 'restoring', 'catalog.db'), 'rows')
}

async function storeState(directory: string): Promise<void> {
  const files = stateFiles(directory, () => undefined)
  await uploadStates(files).set('key', 'upload')
}

function storeVariant(directory: string): void {
  const variants = new ServerVariants(directory, () => undefined)
  const [outcome] = variants.apply([
    { kind: 'store', name: `${newItemId()}.thumb-1`, bytes: Buffer.from('thumbnail') },
  ])
  variants.close()
  expect(outcome).toEqual({ output: null })
}

const targets = {
  'an empty file': (target: string) => writeFile(target, ''),
  'a file': (target: string) => writeFile(target, 'precious'),
  'a directory': (target: string) => mkdir(target),
  nothing: () => undefined,
} as const

const contentOf = (path: string): Promise<unknown> =>
  readFile(path, 'utf8').catch(() => readdir(path).catch(() => null))

test.each(writers)('B8 %s is never written through a link', async (name, write) => {
  for (const [what, make] of Object.entries(targets)) {
    const [directory, outside] = [join(tempDirectory(), 'own'), join(tempDirectory(), 'target')]
    await mkdir(join(directory, name, '..'), { recursive: true })
    await make(outside)
    const before = await contentOf(outside)
    await symlink(outside, join(directory, name))
    // A refusal is right too.
    await Promise.resolve(directory)
      .then(write)
      .catch(() => undefined)
    expect(await contentOf(outside), `a link to ${what}`).toEqual(before)
  }
})
