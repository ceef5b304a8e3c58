import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ItemId, newItemId } from '../../../src/core/ids.ts'
import { type Files, nodeFiles } from '../../../src/storage/blobs/disk/files.ts'
import { readBytes, receiveBytes, storeBytes } from './blob-contract.ts'
import { temporaryStore } from './temporary-store.ts'
import { systemError, watchedFiles } from './watched-files.ts'

/** Two ids in one shard. */
const siblings = (): [ItemId, ItemId] => {
  const id = newItemId()
  return [id, `${id.slice(0, 2)}${newItemId().slice(2)}` as ItemId]
}

describe('the order of a durable upload', () => {
  test('write, sync, close < new shard < sync of the root < rename < sync of the shard < resolved', async () => {
    const { files, calls } = watchedFiles()
    await using opened = await temporaryStore({ files })
    calls.length = 0
    const id = newItemId()
    const received = await receiveBytes(opened.store, randomBytes(10), id)
    const shard = id.slice(0, 2)
    await opened.store.commit([received])
    const temporary = basename(received.handle)
    expect(calls).toEqual([
      `open ${temporary}`,
      `write ${temporary}`,
      `sync ${temporary}`,
      `close ${temporary}`,
      `mkdir ${shard}`,
      'open blobs',
      'sync blobs',
      'close blobs',
      `rename ${id}`,
      `open ${shard}`,
      `sync ${shard}`,
      `close ${shard}`,
    ])
  })

  test('the root is synced once for a new shard, and not for a shard of an earlier process', async () => {
    const { files, calls } = watchedFiles()
    await using opened = await temporaryStore({ files })
    const [first, second] = siblings()
    await storeBytes(opened.store, randomBytes(1), first)
    calls.length = 0
    await storeBytes(opened.store, randomBytes(1), second)
    expect(calls.filter((call) => call === 'sync blobs' || call.startsWith('mkdir'))).toEqual([])
  })

  test('two concurrent commits into a new shard resolve after the sync of the root', async () => {
    const reached = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    let isBlocking = false
    const { files, calls } = watchedFiles((call) => {
      if (!isBlocking || call !== 'sync blobs') return
      reached.resolve()
      return released.promise
    })
    await using opened = await temporaryStore({ files })
    isBlocking = true
    const [one, other] = siblings()
    const first = storeBytes(opened.store, randomBytes(1), one)
    await reached.promise
    const second = storeBytes(opened.store, randomBytes(2), other)
    // More disk operations than a commit needs that does not wait.
    for (let turn = 0; turn < 20; turn += 1)
      await opened.store.discard([await receiveBytes(opened.store, randomBytes(1))])
    expect(calls.filter((call) => call.startsWith('rename'))).toEqual([])
    released.resolve()
    await Promise.all([first, second])
    expect(calls.filter((call) => call.startsWith('rename'))).toHaveLength(2)
  })

  test('a removal resolves after the sync of the shard, also if the bytes were already removed', async () => {
    const { files, calls } = watchedFiles()
    await using opened = await temporaryStore({ files })
    const id = await storeBytes(opened.store, randomBytes(10))
    calls.length = 0
    await opened.store.remove(id)
    expect(calls.slice(0, 3)).toEqual([`unlink ${id}`, `open ${id.slice(0, 2)}`, `sync ${id.slice(0, 2)}`])
    calls.length = 0
    await opened.store.remove(id)
    expect(calls).toContain(`sync ${id.slice(0, 2)}`)
  })
})

describe('a failing disk', () => {
  /** Files whose first matching call after `failNext()` fails. */
  function failingOnce(code: string, matches: (call: string) => boolean) {
    let isFailing = false
    let failed = 0
    const watched = watchedFiles((call) => {
      if (!isFailing || !matches(call)) return
      isFailing = false
      failed += 1
      throw systemError(code)
    })
    return {
      ...watched,
      failNext: () => {
        isFailing = true
      },
      failures: () => failed,
    }
  }

  test.each([
    ['EIO', 'open', undefined],
    ['EIO', 'write', undefined],
    ['EIO', 'sync', undefined],
    ['EIO', 'close', undefined],
    ['ENOSPC', 'open', 'storage-full'],
    ['ENOSPC', 'write', 'storage-full'],
    ['EDQUOT', 'write', 'storage-full'],
    ['ENOSPC', 'sync', 'storage-full'],
  ])(
    'U10: %s at the %s of a received file: it is refused, leaves no bytes, and is not retried',
    async (error, kind, code) => {
      const disk = failingOnce(error, (call) => call.startsWith(`${kind} `))
      await using opened = await temporaryStore({ files: disk.files })
      disk.calls.length = 0
      disk.failNext()
      const failure = await receiveBytes(opened.store, randomBytes(5000)).catch((reason: unknown) => reason)
      expect(failure).toMatchObject({ code: code ?? error })
      expect(disk.failures()).toBe(1)
      expect(disk.calls.filter((call) => call.startsWith('sync'))).toHaveLength(kind === 'close' ? 1 : 0)
      expect(await opened.temporary()).toEqual([])
      expect(opened.openFiles()).toEqual([])
      expect(await storeBytes(opened.store, randomBytes(10))).toBeTypeOf('string')
    },
  )

  test.each([
    ['EIO', 'the mkdir of the shard', /^mkdir/, 'EIO'],
    ['ENOSPC', 'the mkdir of the shard', /^mkdir/, 'storage-full'],
    ['EIO', 'the sync of the root', /^sync blobs$/, 'EIO'],
    ['EIO', 'the rename', /^rename/, 'EIO'],
    ['ENOSPC', 'the rename', /^rename/, 'storage-full'],
    ['EIO', 'the sync of the shard', /^sync ..$/, 'EIO'],
    ['ENOSPC', 'the sync of the shard', /^sync ..$/, 'storage-full'],
  ])('%s at %s: the commit fails, and the bytes can be discarded', async (error, _where, matches, code) => {
    const disk = failingOnce(error, (call) => matches.test(call))
    await using opened = await temporaryStore({ files: disk.files })
    const [id, sibling] = siblings()
    const received = await receiveBytes(opened.store, randomBytes(10), id)
    disk.failNext()
    await expect(opened.store.commit([received])).rejects.toMatchObject({ code })
    await opened.store.discard([received])
    expect(disk.failures()).toBe(1)
    expect(await opened.store.open(id)).toBeNull()
    expect([await opened.temporary(), await opened.stored(), opened.openFiles()]).toEqual([[], [], []])

    disk.calls.length = 0
    await storeBytes(opened.store, randomBytes(20), sibling)
    expect(await readBytes(opened.store, sibling)).toHaveLength(20)
    // If the sync of the root failed, the shard is created again: a second sync alone does not prove its entry.
    if (matches.test('sync blobs')) expect(disk.calls).toContain(`mkdir ${sibling.slice(0, 2)}`)
  })

  test('a shard whose entry could neither be synced nor removed is synced again', async () => {
    let broken = true
    const { files } = watchedFiles((call) => {
      if (opening || !broken) return
      if (call === 'sync blobs' || call.startsWith('rmdir')) throw systemError('EIO')
    })
    let opening = true
    await using opened = await temporaryStore({ files })
    opening = false
    const [first, second] = siblings()
    await expect(storeBytes(opened.store, randomBytes(1), first)).rejects.toThrow('EIO')
    broken = false
    await storeBytes(opened.store, randomBytes(2), second)
    expect(await readBytes(opened.store, second)).toHaveLength(2)
  })

  test('a partial write is continued with the remaining bytes', async () => {
    const open: Files['open'] = async (...request) => {
      const handle = await nodeFiles.open(...request)
      const write = (bytes: Uint8Array, offset: number, length: number) =>
        handle.write(bytes, offset, Math.min(length, 300))
      return new Proxy(handle, {
        get(target, key) {
          if (key === 'write') return write
          const value: unknown = Reflect.get(target, key, target)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    }
    await using opened = await temporaryStore({ files: { ...nodeFiles, open } })
    const bytes = randomBytes(2500)
    expect(await readBytes(opened.store, await storeBytes(opened.store, bytes))).toEqual(bytes)
  })

  test('a removal whose sync fails is rejected, and can be repeated', async () => {
    const disk = failingOnce('EIO', (call) => /^sync ..$/.test(call))
    await using opened = await temporaryStore({ files: disk.files })
    const id = await storeBytes(opened.store, randomBytes(10))
    disk.failNext()
    await expect(opened.store.remove(id)).rejects.toMatchObject({ code: 'EIO' })
    await opened.store.remove(id)
    expect(await opened.store.open(id)).toBeNull()
  })

  test('a store whose root cannot be synced does not open', async () => {
    const { files } = watchedFiles((call) => {
      if (call === 'sync blobs') throw systemError('EIO')
    })
    await expect(temporaryStore({ files })).rejects.toMatchObject({ code: 'EIO' })
  })
})
