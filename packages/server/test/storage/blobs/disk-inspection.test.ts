import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newItemId } from '../../../src/core/ids.ts'
import type { BlobEntry } from '../../../src/storage/blobs/blobs.ts'
import { openDiskInspection } from '../../../src/storage/blobs/disk/disk-inspection.ts'
import { openVariantRows } from '../../../src/storage/blobs/disk/variant-database.ts'
import { describeBlobAudit } from './inspection-contract.ts'
import { temporaryStore } from './temporary-store.ts'

async function openAudited() {
  const opened = await temporaryStore({ inlineSize: 64 * 1024 })
  const { directory, store, count, newUpload } = opened
  const inspection = await openDiskInspection({ directory })
  return {
    directory,
    store,
    count,
    newUpload,
    inspection,
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

describeBlobAudit('disk', openAudited)

test('F1 entries that the store did not create are foreign; a link is moved, not followed', async () => {
  await using opened = await openAudited()
  const { directory, inspection } = opened
  const outside = join(directory, 'outside')
  await mkdir(outside)
  await writeFile(join(outside, newItemId()), 'secret')
  await mkdir(join(directory, 'blobs', 'ab'))
  await writeFile(join(directory, 'blobs', 'ab', `cd${newItemId().slice(2)}`), 'in another shard')
  await writeFile(join(directory, 'blobs', 'ab', 'notes.txt'), '')
  await symlink(outside, join(directory, 'blobs', 'cd'))
  await mkdir(join(directory, 'blobs', 'ab', `ab${newItemId().slice(2)}`))
  await symlink(outside, join(directory, 'uploads', newItemId()))
  await mkdir(join(directory, 'variants', 'ab'), { recursive: true })
  await writeFile(join(directory, 'variants', 'ab', `ab${newItemId().slice(2)}.Huge`), '')
  const found: BlobEntry[] = []
  for await (const one of inspection.entries()) found.push(one)
  expect(found.map(({ kind }) => kind)).toEqual(Array(6).fill('foreign'))
  for (const one of found) expect(await inspection.quarantine(one)).toMatch(/^lost\+found\/foreign\./)
  expect(await readdir(join(directory, 'lost+found'))).toHaveLength(6)
  const [secret = ''] = await readdir(outside)
  expect(await readFile(join(outside, secret), 'utf8')).toBe('secret')
})

test('F1 a link at the path of the variants directory is foreign and is not followed', async () => {
  await using opened = await openAudited()
  const { directory, inspection } = opened
  await mkdir(join(directory, 'outside', 'ab'), { recursive: true })
  await writeFile(join(directory, 'outside', 'ab', 'notes.txt'), '')
  await symlink(join(directory, 'outside'), join(directory, 'variants'))
  const found: BlobEntry[] = []
  for await (const one of inspection.entries()) found.push(one)
  expect(found).toEqual([{ kind: 'foreign', path: 'variants' }])
})

test('F1 two quarantined entries with the same name are both kept in lost+found', async () => {
  await using opened = await openAudited()
  const { directory, inspection } = opened
  for (const text of ['one', 'two']) {
    await writeFile(join(directory, 'blobs', 'same'), text)
    for await (const one of inspection.entries()) await inspection.quarantine(one)
  }
  const names = await readdir(join(directory, 'lost+found'))
  const texts = await Promise.all(names.map((name) => readFile(join(directory, 'lost+found', name), 'utf8')))
  expect(texts.toSorted()).toEqual(['one', 'two'])
})

test('F1 a link at the path of lost+found is not followed', async () => {
  await using opened = await openAudited()
  const { directory, inspection } = opened
  await mkdir(join(directory, 'outside'))
  await symlink(join(directory, 'outside'), join(directory, 'lost+found'))
  await expect(inspection.quarantine({ kind: 'foreign', path: 'blobs/x' })).rejects.toThrow(
    'must be a directory',
  )
})

test('F1 a row of variants.db whose name is a path: the database is foreign, and no file outside is moved', async () => {
  await using opened = await openAudited()
  const { directory, inspection } = opened
  await writeFile(join(directory, 'outside'), 'secret')
  const rows = openVariantRows(directory)
  rows.store(`${newItemId()}.thumb-1/../../outside`, Buffer.from('x'))
  rows.close()
  const found: BlobEntry[] = []
  for await (const one of inspection.entries()) found.push(one)
  for (const one of found) await inspection.quarantine(one)
  expect(found).toEqual([{ kind: 'foreign', path: 'variants.db' }])
  expect(await readFile(join(directory, 'outside'), 'utf8')).toBe('secret')
})
