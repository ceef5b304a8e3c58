import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type MediaId, newMediaId } from '../../src/core/media-id.ts'
import { keepBytes, readBytes, receiveBytes } from './blob-contract.ts'
import { temporaryStore } from './temporary-store.ts'
import { systemError, watchedFiles } from './watched-files.ts'

/** Two ids in one shard. */
const siblings = (): [MediaId, MediaId] => {
  const id = newMediaId()
  return [id, `${id.slice(0, 2)}${newMediaId().slice(2)}` as MediaId]
}

describe('the order of a durable upload', () => {
  test('write, sync, close < new shard < sync of the root < rename < sync of the shard < resolved', async () => {
    const { files, calls } = watchedFiles()
    await using opened = await temporaryStore(files)
    calls.length = 0
    const received = await receiveBytes(opened.store, randomBytes(10))
    const id = newMediaId()
    const shard = id.slice(0, 2)
    await opened.store.keep(received, id)
    const temporary = received.handle
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

  test('the root is synced once for a shard, and not for one that an earlier process made', async () => {
    const { files, calls } = watchedFiles()
    await using opened = await temporaryStore(files)
    const [first, second] = siblings()
    await opened.store.keep(await receiveBytes(opened.store, randomBytes(1)), first)
    calls.length = 0
    await opened.store.keep(await receiveBytes(opened.store, randomBytes(1)), second)
    expect(calls.filter((call) => call === 'sync blobs' || call.startsWith('mkdir'))).toEqual([])
  })

  test('of two that come at once into a new shard neither resolves before the root is synced', async () => {
    const root = Promise.withResolvers<void>()
    let held = false
    const { files, calls } = watchedFiles((call) =>
      held && call === 'sync blobs' ? root.promise : undefined,
    )
    await using opened = await temporaryStore(files)
    held = true
    const received = await Promise.all([1, 2].map((size) => receiveBytes(opened.store, randomBytes(size))))
    const resolved: MediaId[] = []
    const ids = siblings()
    const keeps = received.map(async (blob, index) => {
      const id = ids[index] ?? newMediaId()
      await opened.store.keep(blob, id)
      resolved.push(id)
    })
    // Work that takes many more turns of the disk than a keep that did not wait would need.
    for (let turn = 0; turn < 20; turn += 1)
      await opened.store.discard(await receiveBytes(opened.store, randomBytes(1)))
    expect(resolved).toEqual([])
    expect(calls.filter((call) => call.startsWith('rename'))).toEqual([])
    root.resolve()
    await Promise.all(keeps)
    expect(resolved).toHaveLength(2)
  })

  test('a removal resolves after the sync of the shard, also when the bytes were gone already', async () => {
    const { files, calls } = watchedFiles()
    await using opened = await temporaryStore(files)
    const id = await keepBytes(opened.store, randomBytes(10))
    calls.length = 0
    await opened.store.remove(id)
    expect(calls.slice(0, 3)).toEqual([`unlink ${id}`, `open ${id.slice(0, 2)}`, `sync ${id.slice(0, 2)}`])
    calls.length = 0
    await opened.store.remove(id)
    expect(calls).toContain(`sync ${id.slice(0, 2)}`)
  })
})

describe('a disk that fails', () => {
  /** Fails the first call that `matches` once it is armed. */
  function failingOnce(code: string, matches: (call: string) => boolean) {
    let armed = false
    let failed = 0
    const watched = watchedFiles((call) => {
      if (!armed || !matches(call)) return
      armed = false
      failed += 1
      throw systemError(code)
    })
    return {
      ...watched,
      arm: () => {
        armed = true
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
    'U10: %s at the %s of a file that arrives: refused, nothing left, not tried again',
    async (error, kind, code) => {
      const disk = failingOnce(error, (call) => call.startsWith(`${kind} `))
      await using opened = await temporaryStore(disk.files)
      disk.calls.length = 0
      disk.arm()
      const failure = await receiveBytes(opened.store, randomBytes(5000)).catch((reason: unknown) => reason)
      expect(failure).toMatchObject({ code: code ?? error })
      expect(disk.failures()).toBe(1)
      expect(disk.calls.filter((call) => call.startsWith('sync'))).toHaveLength(kind === 'close' ? 1 : 0)
      expect(await opened.temporary()).toEqual([])
      expect(opened.openFiles()).toEqual([])
      expect(await keepBytes(opened.store, randomBytes(10))).toBeTypeOf('string')
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
  ])('%s at %s: the bytes are not kept, and can be discarded', async (error, _where, matches, code) => {
    const disk = failingOnce(error, (call) => matches.test(call))
    await using opened = await temporaryStore(disk.files)
    const received = await receiveBytes(opened.store, randomBytes(10))
    const [id, sibling] = siblings()
    disk.arm()
    await expect(opened.store.keep(received, id)).rejects.toMatchObject({ code })
    await opened.store.discard(received)
    expect(disk.failures()).toBe(1)
    expect(await opened.store.open(id)).toBeNull()
    expect([await opened.temporary(), await opened.kept(), opened.openFiles()]).toEqual([[], [], []])

    disk.calls.length = 0
    await opened.store.keep(await receiveBytes(opened.store, randomBytes(20)), sibling)
    expect(await readBytes(opened.store, sibling)).toHaveLength(20)
    // After a root that could not be synced the shard is made anew: only then does the next sync prove its entry.
    if (matches.test('sync blobs')) expect(disk.calls).toContain(`mkdir ${sibling.slice(0, 2)}`)
  })

  test('a removal whose sync fails is not done', async () => {
    const disk = failingOnce('EIO', (call) => /^sync ..$/.test(call))
    await using opened = await temporaryStore(disk.files)
    const id = await keepBytes(opened.store, randomBytes(10))
    disk.arm()
    await expect(opened.store.remove(id)).rejects.toMatchObject({ code: 'EIO' })
    await opened.store.remove(id)
    expect(await opened.store.open(id)).toBeNull()
  })

  test('a store whose root cannot be synced does not open', async () => {
    const { files } = watchedFiles((call) => {
      if (call === 'sync blobs') throw systemError('EIO')
    })
    await expect(temporaryStore(files)).rejects.toMatchObject({ code: 'EIO' })
  })
})
