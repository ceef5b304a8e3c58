import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  mkdir,
  mkdtempDisposable,
  readFile,
  rename,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { describe, expect, test } from 'vitest'
import { type ItemId, newItemId } from '../../../src/core/ids.ts'
import { BlobTruncatedError } from '../../../src/storage/blobs/blobs.ts'
import { openDiskBlobs } from '../../../src/storage/blobs/disk/disk-blobs.ts'
import { chunksOf, describeBlobStore, readBytes, receiveBytes, storeBytes } from './blob-contract.ts'
import { type TemporaryStore, temporaryStore } from './temporary-store.ts'

describeBlobStore('the disk', temporaryStore)
describeBlobStore('the disk with a thread', () => temporaryStore({ thread: {} }))

const shardOf = ({ directory }: TemporaryStore, id: ItemId): string =>
  join(directory, 'blobs', id.slice(0, 2))
const pathOf = (opened: TemporaryStore, id: ItemId): string => join(shardOf(opened, id), id)

describe('files of the disk store', () => {
  test('received bytes are in tmp/, committed ones under blobs/ by id, readable only by the owner', async () => {
    await using opened = await temporaryStore()
    const id = newItemId()
    const received = await receiveBytes(opened.store, randomBytes(10), id)
    const [name = ''] = await opened.temporary()
    expect((await stat(join(opened.directory, 'tmp', name))).mode & 0o777).toBe(0o600)
    await opened.store.commit([received])
    expect(await opened.temporary()).toEqual([])
    expect(await opened.stored()).toEqual([pathOf(opened, id)])
    expect((await stat(shardOf(opened, id))).mode & 0o777).toBe(0o700)
  })

  test('a reopened store has the committed bytes', async () => {
    await using opened = await temporaryStore()
    const bytes = randomBytes(1000)
    const id = await storeBytes(opened.store, bytes)
    const again = await openDiskBlobs({ directory: opened.directory })
    expect(await readBytes(again, id)).toEqual(bytes)
  })

  test('a missing data directory is created, and a link to a data directory is followed', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-blobs-'))
    await openDiskBlobs({ directory: join(directory.path, 'a', 'b') })
    await symlink(join(directory.path, 'a'), join(directory.path, 'link'))
    const id = await storeBytes(
      await openDiskBlobs({ directory: join(directory.path, 'link', 'b') }),
      randomBytes(3),
    )
    expect(await stat(join(directory.path, 'a', 'b', 'blobs', id.slice(0, 2), id))).toMatchObject({ size: 3 })
  })

  test('a commit under an existing id is refused, and its bytes stay unchanged', async () => {
    await using opened = await temporaryStore()
    const bytes = randomBytes(100)
    const id = await storeBytes(opened.store, bytes)
    const other = await receiveBytes(opened.store, randomBytes(100), id)
    await expect(opened.store.commit([other])).rejects.toThrow()
    expect(await readBytes(opened.store, id)).toEqual(bytes)
  })

  test('a shard directory that was removed is created again', async () => {
    await using opened = await temporaryStore()
    const id = newItemId()
    await storeBytes(opened.store, randomBytes(1), id)
    await rename(shardOf(opened, id), join(opened.directory, 'elsewhere'))
    const next = `${id.slice(0, 2)}${newItemId().slice(2)}` as ItemId
    await storeBytes(opened.store, randomBytes(2), next)
    expect(await readBytes(opened.store, next)).toHaveLength(2)
    expect(await opened.store.open(id)).toBeNull()
  })
})

describe('recovery of the disk store', () => {
  test('S8 recovery deletes bytes that were received and not committed, and no others', async () => {
    await using opened = await temporaryStore()
    const { store } = opened
    const bytes = randomBytes(20)
    const id = await storeBytes(store, bytes)
    for (const size of [70_000, 70_001]) await receiveBytes(store, randomBytes(size))
    expect(await store.recovery?.removeTemporary()).toBe(2)
    expect(await store.recovery?.removeTemporary()).toBe(0)
    expect(await readBytes(store, id)).toEqual(bytes)
  })
})

describe('open files of the disk store', () => {
  test('U10: a failed upload leaves no file and no open descriptor', async () => {
    await using opened = await temporaryStore()
    const failure = new Error('gone')
    const uploads = Array.from({ length: 50 }, () =>
      opened.store.receive(newItemId(), chunksOf(randomBytes(20_000), 1000, failure), 1e6),
    )
    const results = await Promise.allSettled(uploads)
    expect(results.every((result) => result.status === 'rejected' && result.reason === failure)).toBe(true)
    await expect(opened.store.receive(newItemId(), chunksOf(randomBytes(20_000)), 19_999)).rejects.toThrow()
    expect(await opened.temporary()).toEqual([])
    expect(opened.openFiles()).toEqual([])
  })

  test('commits, removals and complete reads leave no open descriptor', async () => {
    await using opened = await temporaryStore()
    for (const size of [0, 1, 600_000]) {
      const id = await storeBytes(opened.store, randomBytes(size))
      const blob = await opened.store.open(id)
      const stream = blob?.stream(0, size - 1)
      stream?.resume()
      if (stream) await finished(stream)
      await opened.store.remove(id)
    }
    expect(opened.openFiles()).toEqual([])
  })

  test('a stream destroyed before, during and without a read closes its file', async () => {
    await using opened = await temporaryStore()
    const id = await storeBytes(opened.store, randomBytes(2_000_000))
    for (const reads of [0, 1, 2]) {
      const blob = await opened.store.open(id)
      if (blob === null) throw new Error('the blob is gone')
      const stream = blob.stream(0, blob.size - 1)
      const closed = new Promise((resolve) => stream.once('close', resolve))
      for (let read = 0; read < reads; read += 1) await new Promise((resolve) => stream.once('data', resolve))
      stream.read(0)
      stream.destroy()
      await closed
    }
    expect(opened.openFiles()).toEqual([])
  })

  test('closing a blob without reading closes its file; closing it twice has no effect', async () => {
    await using opened = await temporaryStore()
    const blob = await opened.store.open(await storeBytes(opened.store, randomBytes(10)))
    if (process.platform === 'linux') expect(opened.openFiles()).toHaveLength(1)
    await blob?.close()
    await blob?.close()
    expect(opened.openFiles()).toEqual([])
  })

  test('M2: a blob that is removed during a read is read completely', async () => {
    await using opened = await temporaryStore()
    const bytes = randomBytes(900_000)
    const id = await storeBytes(opened.store, bytes)
    const blob = await opened.store.open(id)
    await opened.store.remove(id)
    const chunks: Buffer[] = []
    for await (const chunk of blob?.stream(0, bytes.length - 1) ?? []) chunks.push(chunk)
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
  })

  test('B9: the stream of a file that shrinks during the read fails', async () => {
    await using opened = await temporaryStore()
    const id = await storeBytes(opened.store, randomBytes(900_000))
    const blob = await opened.store.open(id)
    await truncate(pathOf(opened, id), 300_000)
    const stream = blob?.stream(0, 899_999)
    stream?.resume()
    await expect(stream && finished(stream)).rejects.toThrow(BlobTruncatedError)
    expect(opened.openFiles()).toEqual([])
  })

  test('B9: a read past the end of a file that shrank fails, and close waits for it', async () => {
    await using opened = await temporaryStore()
    const id = await storeBytes(opened.store, randomBytes(900_000))
    const blob = await opened.store.open(id)
    await truncate(pathOf(opened, id), 300_000)
    const order: string[] = []
    const reading = blob?.read(Buffer.alloc(900_000), 0).catch(({ message }: Error) => order.push(message))
    await blob?.close()
    order.push('closed')
    await reading
    expect(order).toEqual(['a blob ended before its size', 'closed'])
    expect(opened.openFiles()).toEqual([])
  })
})

describe('B8: entries that the store did not create', () => {
  async function withSecret(opened: TemporaryStore): Promise<{ secret: string; id: ItemId }> {
    const outside = join(opened.directory, 'outside')
    await mkdir(outside)
    const id = newItemId()
    await writeFile(join(outside, id), 'secret')
    return { secret: join(outside, id), id }
  }

  test('a link at the path of a blob is not followed, and a removal deletes only the link', async () => {
    await using opened = await temporaryStore()
    const { secret, id } = await withSecret(opened)
    await mkdir(shardOf(opened, id))
    await symlink(secret, pathOf(opened, id))
    await expect(opened.store.open(id)).rejects.toMatchObject({ code: 'media-unknown' })
    const received = await receiveBytes(opened.store, randomBytes(10), id)
    await expect(opened.store.commit([received])).rejects.toThrow()
    await opened.store.remove(id)
    expect(await opened.stored()).toEqual([])
    expect(await readFile(secret, 'utf8')).toBe('secret')
    expect(opened.openFiles()).toEqual([])
  })

  test('a link at the path of a shard is not followed by reads, commits and removals', async () => {
    await using opened = await temporaryStore()
    const { secret, id } = await withSecret(opened)
    await symlink(join(opened.directory, 'outside'), shardOf(opened, id))
    await expect(opened.store.open(id)).rejects.toMatchObject({ code: 'media-unknown' })
    await expect(opened.store.remove(id)).rejects.toThrow()
    const sibling = `${id.slice(0, 2)}${newItemId().slice(2)}` as ItemId
    await expect(storeBytes(opened.store, randomBytes(10), sibling)).rejects.toThrow()
    await expect(stat(join(opened.directory, 'outside', sibling))).rejects.toMatchObject({ code: 'ENOENT' })
    expect(await readFile(secret, 'utf8')).toBe('secret')
  })

  test('a shard that is replaced by a link after its use is not followed', async () => {
    await using opened = await temporaryStore()
    const id = await storeBytes(opened.store, randomBytes(10))
    await rename(shardOf(opened, id), join(opened.directory, 'moved'))
    await symlink(join(opened.directory, 'moved'), shardOf(opened, id))
    await expect(opened.store.open(id)).rejects.toMatchObject({ code: 'media-unknown' })
    await expect(opened.store.remove(id)).rejects.toThrow()
    const sibling = `${id.slice(0, 2)}${newItemId().slice(2)}` as ItemId
    await expect(storeBytes(opened.store, randomBytes(10), sibling)).rejects.toThrow()
  })

  test('a blobs directory that is replaced by a link is not followed', async () => {
    await using opened = await temporaryStore()
    const id = await storeBytes(opened.store, randomBytes(10))
    await rename(join(opened.directory, 'blobs'), join(opened.directory, 'moved'))
    await symlink(join(opened.directory, 'moved'), join(opened.directory, 'blobs'))
    await expect(opened.store.open(id)).rejects.toMatchObject({ code: 'media-unknown' })
    await expect(storeBytes(opened.store, randomBytes(10), newItemId())).rejects.toThrow()
  })

  test.each(['tmp', 'uploads', 'blobs'])(
    'a store whose %s directory is a link does not open',
    async (name) => {
      await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-blobs-'))
      await mkdir(join(directory.path, 'elsewhere'))
      await symlink(join(directory.path, 'elsewhere'), join(directory.path, name))
      await expect(openDiskBlobs({ directory: directory.path })).rejects.toThrow('not a link')
    },
  )

  test('a directory and a pipe at the path of a blob, and a file at the path of a shard, are not read', async () => {
    await using opened = await temporaryStore()
    const [directory, pipe, flat] = ['00', '01', '02'].map(
      (shard) => shard + newItemId().slice(2),
    ) as ItemId[]
    if (!directory || !pipe || !flat) throw new Error('three ids')
    await mkdir(pathOf(opened, directory), { recursive: true })
    await mkdir(shardOf(opened, pipe))
    execFileSync('/usr/bin/mkfifo', [pathOf(opened, pipe)])
    await writeFile(shardOf(opened, flat), 'flat')
    for (const id of [directory, pipe, flat])
      await expect(opened.store.open(id)).rejects.toMatchObject({ code: 'media-unknown' })
    expect(opened.openFiles()).toEqual([])
  })

  test('recovery removes a link in tmp/, not its target', async () => {
    await using opened = await temporaryStore()
    const { secret } = await withSecret(opened)
    await symlink(join(opened.directory, 'outside'), join(opened.directory, 'tmp', 'planted'))
    expect(await opened.store.recovery?.removeTemporary()).toBe(1)
    expect(await opened.temporary()).toEqual([])
    expect(await readFile(secret, 'utf8')).toBe('secret')
  })
})
