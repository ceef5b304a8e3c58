import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { headRoom } from '../../src/core/bytes.ts'
import { BytesCache } from '../../src/downloads/bytes-cache.ts'
import type { OpenVariant } from '../../src/pictures/rendered-variants.ts'
import { openMemoryBlob } from '../../src/storage/blobs/memory-blob.ts'

const kilobyte = 1_000
const entryOverhead = headRoom + 600
/** The memory of a cached file of a kilobyte. */
const entrySize = kilobyte + entryOverhead
const megabyte = 1_048_576

/** Files on a disk that counts its reads. */
function createDisk() {
  const read: string[] = []
  let open = 0
  const file = (name: string, size: number) => async (): Promise<OpenVariant> => {
    open += 1
    return {
      size,
      content: { type: 'file', path: `/${name}` },
      async read(into) {
        if (size === 0) throw new Error('an empty file has nothing to read')
        read.push(name)
        Buffer.from(into.buffer, into.byteOffset, into.byteLength).fill(name)
      },
      stream: () => {
        throw new Error('the cache reads no streams')
      },
      async close() {
        open -= 1
      },
    }
  }
  return { file, read, openFiles: () => open }
}

function bytesOf({ content }: OpenVariant): Uint8Array {
  if (content.type !== 'bytes') throw new Error('the bytes are not in memory')
  return content.bytes
}

/** Requests a file as a response does: opens it, sends it, closes it. Returns whether its bytes were in memory. */
async function request(
  cache: BytesCache,
  disk: ReturnType<typeof createDisk>,
  name: string,
  size = kilobyte,
) {
  const blob = await cache.open(name, { size, sha256: null }, disk.file(name, size))
  const isWhole = blob.content.type === 'bytes'
  await blob.close()
  // Concurrent requests share a read until its bytes are cached.
  await setImmediate()
  return isWhole
}

test('bytes are read once while they are cached', async () => {
  const [cache, disk] = [new BytesCache(megabyte), createDisk()]
  for (let round = 0; round < 3; round += 1) {
    const opened = await cache.open('a', { size: kilobyte, sha256: null }, disk.file('a', kilobyte))
    expect(Buffer.from(bytesOf(opened)).toString()).toBe('a'.repeat(kilobyte))
  }
  expect([disk.read, disk.openFiles()]).toEqual([['a'], 0])
  expect(cache.statistics()).toEqual({ hits: 2, misses: 1, size: entrySize })
})

test('N6 bytes are shared as long as they are cached', async () => {
  for (const [capacity, isCached] of [
    [megabyte, true],
    [0, false],
  ] as const) {
    const [cache, disk] = [new BytesCache(capacity), createDisk()]
    await request(cache, disk, 'a')
    const { content } = await cache.open('a', { size: kilobyte, sha256: null }, disk.file('a', kilobyte))
    expect(content.type === 'bytes' && content.isShared === true).toBe(isCached)
  }
})

test('F3 bytes without the hash of their row are returned, but not cached', async () => {
  const [cache, disk] = [new BytesCache(megabyte), createDisk()]
  const open = async (sha256: Uint8Array) =>
    cache.open('a', { size: kilobyte, sha256 }, disk.file('a', kilobyte))
  const [right, wrong] = ['a', 'b'].map((letter) => hash('sha256', letter.repeat(kilobyte), 'buffer'))
  if (!right || !wrong) throw new Error('two hashes')
  await expect
    .poll(async () => {
      expect((await open(wrong)).size).toBe(kilobyte)
      return disk.read.length
    })
    .toBeGreaterThan(2)
  expect(cache.statistics().size).toBe(0)
  await expect
    .poll(async () => {
      await open(right)
      return cache.statistics().size
    })
    .toBe(entrySize)
})

test('with the size 0 nothing is cached', async () => {
  const [cache, disk] = [new BytesCache(0), createDisk()]
  for (let round = 0; round < 2; round += 1) expect(await request(cache, disk, 'a')).toBe(true)
  expect([disk.read, cache.statistics()]).toEqual([['a', 'a'], { hits: 0, misses: 2, size: 0 }])
})

test('an empty file is cached', async () => {
  const [cache, disk] = [new BytesCache(megabyte), createDisk()]
  for (let round = 0; round < 2; round += 1) expect(await request(cache, disk, 'a', 0)).toBe(true)
  expect(cache.statistics()).toMatchObject({ hits: 1, misses: 1 })
})

test('concurrent requests share one read, and one failure', async () => {
  const [cache, disk] = [new BytesCache(0), createDisk()]
  await Promise.all(Array.from({ length: 5 }, () => request(cache, disk, 'a')))
  expect(disk.read).toEqual(['a'])
  const broken = Array.from({ length: 3 }, () =>
    cache.open('b', { size: 1, sha256: null }, () => Promise.reject(new Error('broken'))).catch(String),
  )
  expect(await Promise.all(broken)).toEqual(Array.from({ length: 3 }, () => 'Error: broken'))
  expect(await request(cache, disk, 'b')).toBe(true)
})

test('memory of bytes that are not cached is freed when the last of their requests has closed them', async () => {
  const [cache, disk] = [new BytesCache(0), createDisk()]
  const open = (isOwn: boolean) =>
    cache.open('a', { size: kilobyte, sha256: null, isOwn }, disk.file('a', kilobyte))
  const [first, second] = await Promise.all([open(true), open(true)])
  expect(disk.read).toEqual(['a'])
  await first.close()
  await first.close()
  await setImmediate()
  expect(String(bytesOf(second))).toBe('a'.repeat(kilobyte))
  await second.close()
  // A request of the same tick may still open them.
  expect(String(bytesOf(second))).toBe('a'.repeat(kilobyte))
  await setImmediate()
  expect(bytesOf(second).length).toBe(0)

  const shared = await open(false)
  await shared.close()
  await setImmediate()
  expect(bytesOf(shared).length).toBe(kilobyte)
})

test('bytes that are opened again when all have closed them are freed once, after their last use', async () => {
  // An error of dispose is thrown by runAllTimers.
  vi.useFakeTimers({ toFake: ['setImmediate'] })
  try {
    let shared = 0
    for (let delay = 0; delay < 20; delay += 1)
      for (const isUsed of [true, false]) {
        const [cache, disk] = [new BytesCache(0), createDisk()]
        const open = () =>
          cache.open('a', { size: kilobyte, sha256: null, isOwn: true }, disk.file('a', kilobyte))
        const closing = open().then((blob) => blob.close())
        for (let tick = 0; tick < delay; tick += 1) await Promise.resolve()
        const again = await open()
        await closing
        if (disk.read.length === 1) shared += 1
        if (isUsed) {
          vi.runAllTimers()
          expect(String(bytesOf(again))).toBe('a'.repeat(kilobyte))
        }
        await again.close()
        vi.runAllTimers()
        expect(bytesOf(again).length).toBe(0)
      }
    expect(shared).toBeGreaterThan(0)
  } finally {
    vi.useRealTimers()
  }
})

test('memory of bytes that are cached is not freed', async () => {
  const [cache, disk] = [new BytesCache(megabyte), createDisk()]
  for (const size of [kilobyte, 100 * kilobyte])
    for (let round = 0; round < 3; round += 1) {
      const blob = await cache.open(`${size}`, { size, sha256: null, isOwn: true }, disk.file('a', size))
      await blob.close()
      await setImmediate()
      expect(bytesOf(blob).length).toBe(size)
    }
})

test('bytes are opened from memory only if they are cached', async () => {
  const [cache, disk] = [new BytesCache(megabyte), createDisk()]
  expect(cache.openCached('a')).toBeNull()
  await request(cache, disk, 'a')
  expect(cache.openCached('a')?.size).toBe(kilobyte)
  cache.remove('a')
  expect(cache.openCached('a')).toBeNull()
  expect(cache.statistics().size).toBe(0)
})

test('bytes that are opened from memory count as requested only if they are sent', async () => {
  for (const isSent of [true, false]) {
    const [cache, disk] = [new BytesCache(2 * entrySize - 1), createDisk()]
    await request(cache, disk, 'a')
    for (let count = 0; count < 5; count += 1) {
      await cache.openCached('a')?.close()
      if (isSent) cache.countRequest('a')
    }
    expect(cache.statistics().hits).toBe(isSent ? 5 : 0)
    // The cache has room for one of them.
    for (let count = 0; count < 3; count += 1) await request(cache, disk, 'b')
    expect([cache.openCached('a') !== null, cache.openCached('b') !== null]).toEqual([isSent, !isSent])
  }
})

test('bytes that are opened from memory and sent are not the next to be evicted', async () => {
  const [cache, disk] = [new BytesCache(3 * entrySize - 1), createDisk()]
  for (const name of ['a', 'b']) await request(cache, disk, name)
  cache.countRequest('a')
  // The first request is outvoted by b, the second one by a, the third one evicts b.
  for (let count = 0; count < 3; count += 1) await request(cache, disk, 'c')
  expect(['a', 'b', 'c'].map((name) => cache.openCached(name) !== null)).toEqual([true, false, true])
})

test('the memory of the callers is counted', async () => {
  const [cache, disk] = [new BytesCache(3_000, 500), createDisk()]
  await request(cache, disk, 'a', 500)
  await request(cache, disk, 'b')
  expect(cache.statistics().size).toBe(500 + entryOverhead + 500)
})

test('cached bytes have unused memory in front of them, also if they were read elsewhere', async () => {
  const [cache, disk] = [new BytesCache(megabyte), createDisk()]
  await request(cache, disk, 'a')
  const bytes = Buffer.alloc(kilobyte, 'b')
  await cache.open('b', { size: kilobyte, sha256: null }, async () => openMemoryBlob(bytes))
  await setImmediate()
  for (const name of ['a', 'b']) {
    const cached = bytesOf(cache.openCached(name) ?? expect.unreachable())
    expect([cached.byteOffset, cached.buffer.byteLength]).toEqual([headRoom, headRoom + kilobyte])
    expect(Buffer.from(cached).toString()).toBe(name.repeat(kilobyte))
  }
})

test('reading many files once evicts none that are requested often', async () => {
  const [cache, disk] = [new BytesCache(62 * entrySize), createDisk()]
  const hot = Array.from({ length: 30 }, (_, index) => `hot ${index}`)
  for (let round = 0; round < 3; round += 1) for (const name of hot) await request(cache, disk, name)
  for (let index = 0; index < 1_000; index += 1) {
    await request(cache, disk, `cold ${index}`)
    if (index % 10 === 0) await request(cache, disk, hot[(index / 10) % 30] ?? '')
  }
  disk.read.length = 0
  for (const name of hot) await request(cache, disk, name)
  expect(disk.read).toEqual([])
})

test('files that are requested often replace those that were', async () => {
  const [cache, disk] = [new BytesCache(10 * entrySize), createDisk()]
  for (let round = 0; round < 3; round += 1)
    for (let index = 0; index < 10; index += 1) await request(cache, disk, `old ${index}`)
  for (let round = 0; round < 5; round += 1)
    for (let index = 0; index < 10; index += 1) await request(cache, disk, `new ${index}`)
  disk.read.length = 0
  for (let index = 0; index < 10; index += 1) await request(cache, disk, `new ${index}`)
  expect(disk.read).toEqual([])
  expect(cache.statistics().size).toBeLessThanOrEqual(10 * entrySize)
})

test('files that were in great demand do not keep others from being cached', async () => {
  const [cache, disk] = [new BytesCache(10 * entrySize - 1), createDisk()]
  for (let round = 0; round < 200; round += 1) await request(cache, disk, 'past')
  for (let index = 0; index < 9; index += 1) await request(cache, disk, `once ${index}`)
  for (let round = 0; round < 5; round += 1) await request(cache, disk, 'now')
  disk.read.length = 0
  await request(cache, disk, 'now')
  expect(disk.read).toEqual([])
})

test('a large file is cached once it is requested more often than all files that it displaces', async () => {
  const [cache, disk] = [new BytesCache(10 * entrySize - 1), createDisk()]
  for (let index = 0; index < 10; index += 1) await request(cache, disk, `small ${index}`)
  // It displaces nine small files.
  const readsOf = async (times: number) => {
    disk.read.length = 0
    for (let count = 0; count < times; count += 1)
      await request(cache, disk, 'large', 9 * entrySize - entryOverhead)
    return disk.read.length
  }
  expect(await readsOf(9)).toBe(9)
  expect(await readsOf(5)).toBe(1)
})

test('bytes of more than 1 MiB are left to the caller, and not counted', async () => {
  const [cache, disk] = [new BytesCache(64 * megabyte), createDisk()]
  expect(await request(cache, disk, 'largest', megabyte)).toBe(true)
  expect(await request(cache, disk, 'larger', megabyte + 1)).toBe(false)
  // Of variants the size is not known before they are opened.
  const blob = await cache.open('unknown', { size: null, sha256: null }, disk.file('unknown', megabyte + 1))
  expect(blob.content.type).toBe('file')
  await blob.close()
  expect(disk.openFiles()).toBe(0)
  expect(cache.statistics()).toMatchObject({ hits: 0, misses: 2 })
})

test('N6 bytes that many clients receive slowly are limited: then only files up to 64 kB are read whole', async () => {
  const [cache, disk] = [new BytesCache(0), createDisk()]
  const names = Array.from({ length: 1_000 }, (_, index) => `file ${index}`)
  const opened = await Promise.all(
    names.map((name) => cache.open(name, { size: megabyte, sha256: null }, disk.file(name, megabyte))),
  )
  const whole = opened.filter(({ content }) => content.type === 'bytes')
  expect(whole.length * megabyte).toBeLessThanOrEqual(64 * megabyte)
  expect(whole.length).toBeGreaterThan(20)
  expect(await request(cache, disk, 'small', 65_536)).toBe(true)
  expect(await request(cache, disk, 'medium', megabyte)).toBe(false)
  for (const blob of opened) await blob.close()
  for (const blob of opened) await blob.close()
  expect(await request(cache, disk, 'medium', megabyte)).toBe(true)
})
