import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { seededRandom } from '../../../../../test/harness/random.ts'
import { newItemId } from '../../../src/core/ids.ts'
import { DiskBlobsDirectory } from '../../../src/storage/blobs/disk/blobs-directory.ts'
import { openDiskBlobs } from '../../../src/storage/blobs/disk/disk-blobs.ts'
import { nodeFiles } from '../../../src/storage/blobs/disk/files.ts'
import { openVariantRows } from '../../../src/storage/blobs/disk/variant-database.ts'
import { medium, thumb } from '../../variant-samples.ts'
import { firstOutput, killHard, startProcess } from '../catalog/child-process.ts'
import { tempDirectory } from '../catalog/temp-directory.ts'
import { temporaryStore } from './temporary-store.ts'
import { describeVariants, readVariant } from './variant-contract.ts'

const inlineSize = 64 * 1024
/** As the store of a server. */
const inlineStore = (options: Parameters<typeof temporaryStore>[0] = {}) =>
  temporaryStore({ inlineSize, ...options })

describeVariants('disk', temporaryStore)
describeVariants('disk and database', inlineStore)
describeVariants('disk and database with a thread', () => inlineStore({ thread: {} }))

/** Too large for `variants.db`. */
const large = () => randomBytes(inlineSize + 1)

const entriesOf = async (directory: string) =>
  (await readdir(directory)).filter((name) => name.startsWith('variants')).sort()

test('V5 variants of up to 64 kB are rows of variants.db, larger ones are files', async () => {
  await using opened = await inlineStore()
  const { directory, store } = opened
  expect(await entriesOf(directory)).toEqual([])
  const id = newItemId()
  expect(await readVariant(store, id, thumb.key)).toBeNull()
  await store.variants.remove(id)
  // A backup is opened as a store too, and must not contain variants.
  expect(await entriesOf(directory)).toEqual([])
  await store.variants.store(id, thumb.key, large().subarray(1))
  expect(await entriesOf(directory)).toEqual(['variants.db', 'variants.db-shm', 'variants.db-wal'])
  await store.variants.store(id, medium.key, large())
  expect(await readdir(join(directory, 'variants', id.slice(0, 2)))).toEqual([`${id}.medium-3`])
  await store.variants.remove(id)
  expect(await readdir(join(directory, 'variants', id.slice(0, 2)))).toEqual([])
})

test('V5 after an operator has removed variants.db beside a running server, variants are stored again', async () => {
  await using opened = await inlineStore({ thread: {} })
  const { directory, store } = opened
  const id = newItemId()
  await store.variants.store(id, thumb.key, Buffer.from('first'))
  for (const name of await entriesOf(directory)) await rm(join(directory, name))
  expect(await readVariant(store, id, thumb.key)).toBeNull()
  await store.variants.store(id, thumb.key, Buffer.from('second'))
  expect(String(await readVariant(store, id, thumb.key))).toBe('second')
  expect(await entriesOf(directory)).toEqual(['variants.db', 'variants.db-shm', 'variants.db-wal'])
})

/** What a power failure may leave of a database that is not synced. */
const damages: Readonly<Record<string, (bytes: Buffer, below: (limit: number) => number) => Buffer>> = {
  'its first page is zeros': (bytes) => bytes.fill(0, 0, 8192),
  'its first page is noise': (bytes) => bytes.fill(randomBytes(8192), 0, 8192),
  'its end is missing': (bytes) => bytes.subarray(0, bytes.length / 2),
  'pages are zeros': (bytes, below) => {
    for (let count = 0; count < 5; count += 1) {
      const start = 8192 * (1 + below(bytes.length / 8192 - 1))
      bytes.fill(0, start, start + 8192)
    }
    return bytes
  },
  'pages have the content of others': (bytes, below) => {
    const page = () => 8192 * (1 + below(bytes.length / 8192 - 1))
    for (let count = 0; count < 5; count += 1) bytes.copyWithin(page(), ...range(page()))
    return bytes
  },
  'bits are flipped': (bytes, below) => {
    for (let count = 0; count < 20; count += 1) {
      const at = 8192 + below(bytes.length - 8192)
      bytes[at] = (bytes[at] ?? 0) ^ 1
    }
    return bytes
  },
}
const range = (start: number): [number, number] => [start, start + 8192]

test.each(Object.entries(damages))(
  'V5 a variants.db of which %s never gives wrong bytes; it is logged, and created again',
  async (_what, damage) => {
    const below = seededRandom()
    const stored = new Map(Array.from({ length: 40 }, () => [newItemId(), randomBytes(10 + below(30_000))]))
    await using opened = await inlineStore()
    const { directory } = opened
    for (const [id, bytes] of stored) await opened.store.variants.store(id, thumb.key, bytes)
    // The last connection that closes moves the log into the database.
    await opened.store.close()
    const path = join(directory, 'variants.db')
    await writeFile(path, damage(await readFile(path), below))

    await new DiskBlobsDirectory(directory).writeIdentity('test')
    const reasons: string[] = []
    const thread = { onVariantDamage: (reason: string) => void reasons.push(reason) }
    const store = await openDiskBlobs({ directory, inlineSize, thread })
    try {
      for (let round = 0; round < 2; round += 1)
        for (const [id, bytes] of stored) {
          const found = await readVariant(store, id, thumb.key)
          if (found !== null) expect(found.equals(bytes)).toBe(true)
          // As a request for a missing variant does.
          else await store.variants.store(id, thumb.key, bytes)
        }
      expect(reasons).not.toEqual([])
      for (const [id, bytes] of stored) expect(await readVariant(store, id, thumb.key)).toEqual(bytes)
      for (const id of stored.keys()) await store.variants.remove(id)
      for (const id of stored.keys()) expect(await readVariant(store, id, thumb.key)).toBeNull()
    } finally {
      await store.close()
    }
  },
)

test('V5 a process that is killed leaves variants.db intact, with what it had stored', async () => {
  const directory = tempDirectory()
  const id = newItemId()
  const child = startProcess(
    '../../../blobs/disk/variant-database.ts',
    `const variants = new module.ServerVariants(${JSON.stringify(directory)}, () => process.exit(1))
    for (let number = 1; ; number += 1) {
      const bytes = Buffer.alloc(20_000, number % 100)
      variants.apply([{ kind: 'store', name: '${id}.' + number % 100, bytes }])
      if (number % 250 === 0) process.stdout.write('stored ')
    }`,
  )
  await firstOutput(child)
  await killHard(child)
  const rows = openVariantRows(directory)
  const found = rows.list('', 1000)
  expect(found).toHaveLength(100)
  for (const { name } of found) {
    const bytes = rows.read(name)
    const [first = 0] = bytes ?? []
    expect([name, bytes && Buffer.from(bytes)]).toEqual([name, Buffer.alloc(20_000, first)])
    expect(name).toBe(`${id}.${first}`)
  }
  rows.close()
})

test('B8 links at the paths of a variant, its directory and the variants directory are not followed', async () => {
  await using opened = await inlineStore()
  const { directory, store } = opened
  const id = newItemId()
  const outside = join(directory, 'outside')
  await mkdir(join(outside, id.slice(0, 2)), { recursive: true })
  await writeFile(join(outside, id.slice(0, 2), `${id}.thumb-3`), 'secret')
  await symlink(outside, join(directory, 'variants'))
  await expect(readVariant(store, id, thumb.key)).rejects.toMatchObject({ code: 'media-unknown' })
  await expect(store.variants.store(id, thumb.key, large())).rejects.toThrow('is not a directory')
  await expect(store.variants.remove(id)).rejects.toThrow('is not a directory')
  expect(await readdir(join(outside, id.slice(0, 2)))).toEqual([`${id}.thumb-3`])
  expect(await opened.temporary()).toEqual([])
})

test('V5 a variant that cannot be stored leaves no temporary file', async () => {
  const rename = () => Promise.reject(new Error('no rename'))
  await using opened = await inlineStore({ files: { ...nodeFiles, rename } })
  await expect(opened.store.variants.store(newItemId(), thumb.key, large())).rejects.toThrow('no rename')
  expect(await opened.temporary()).toEqual([])
})
