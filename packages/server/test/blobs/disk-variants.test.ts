import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nodeFiles } from '../../src/blobs/disk/files.ts'
import { newMediaId } from '../../src/core/media-id.ts'
import { temporaryStore } from './temporary-store.ts'
import { describeVariants, readVariant } from './variant-contract.ts'

describeVariants('disk', temporaryStore)

test('B8 links at the paths of a variant, its directory and the variants directory are not followed', async () => {
  await using opened = await temporaryStore()
  const { directory, store } = opened
  const id = newMediaId()
  const outside = join(directory, 'outside')
  await mkdir(join(outside, id.slice(0, 2)), { recursive: true })
  await writeFile(join(outside, id.slice(0, 2), `${id}.thumb-1`), 'secret')
  await symlink(outside, join(directory, 'variants'))
  await expect(readVariant(store, id, 'thumb')).rejects.toMatchObject({ code: 'media-unknown' })
  await expect(store.variants.store(id, 'thumb', Buffer.from('x'))).rejects.toThrow('is not a directory')
  await expect(store.variants.remove(id)).rejects.toThrow('is not a directory')
  expect(await readdir(join(outside, id.slice(0, 2)))).toEqual([`${id}.thumb-1`])
  expect(await opened.temporary()).toEqual([])
})

test('V5 a variant that cannot be stored leaves no temporary file', async () => {
  const rename = () => Promise.reject(new Error('no rename'))
  await using opened = await temporaryStore({ files: { ...nodeFiles, rename } })
  await expect(opened.store.variants.store(newMediaId(), 'thumb', Buffer.from('x'))).rejects.toThrow(
    'no rename',
  )
  expect(await opened.temporary()).toEqual([])
})
