import { expect, test } from 'vitest'
import type { PeerCounts } from '../core/peer-counts.ts'
import { type FileSystemSpace, FreeSpace } from './space.ts'

const megabyte = 1024 * 1024

/** Free space of file systems that a test changes, with a clock that a test advances. */
function watch(spaces: FileSystemSpace[]) {
  let receive: Parameters<PeerCounts['subscribe']>[1] = () => undefined
  const state = { now: 0, readings: 0, claimElsewhere: (bytes: number) => receive('', bytes) }
  const subscribe: PeerCounts['subscribe'] = (_topic, callback) => {
    receive = callback
  }
  const space = new FreeSpace({
    readSpaces() {
      state.readings += 1
      return [...spaces]
    },
    now: () => state.now,
    peers: { add() {}, subscribe },
  })
  return { space, state }
}

const disk = (free: number): FileSystemSpace => ({
  stores: 'blobs and catalog',
  free,
  total: 1000 * megabyte,
  reserve: 100 * megabyte,
})

/** Receives one megabyte after the other; returns after which ones the file systems were read. */
function readingsOf({ space, state }: ReturnType<typeof watch>, megabytes: number): number[] {
  const claim = space.claim(0)
  const readAfter: number[] = []
  for (let received = 1; received <= megabytes; received += 1) {
    const before = state.readings
    claim.arrived(megabyte)
    if (state.readings > before) readAfter.push(received)
  }
  return readAfter
}

test('S4 with little space, it is read after each MiB', () => {
  expect(readingsOf(watch([disk(150 * megabyte)]), 4)).toEqual([1, 2, 3, 4])
})

test('S4 with much space, it is read after a hundredth of it', () => {
  expect(readingsOf(watch([disk(600 * megabyte)]), 15)).toEqual([5, 10, 15])
})

test('S4 the fullest file system decides how often space is read', () => {
  const [blobs, catalog] = [disk(600 * megabyte), disk(300 * megabyte)]
  const both = watch([
    { ...blobs, stores: 'blobs' },
    { ...catalog, stores: 'catalog' },
  ])
  expect(readingsOf(both, 6)).toEqual([2, 4, 6])
})

test('S4 space that uploads have claimed, in any process, does not count as much space', () => {
  const watched = watch([disk(600 * megabyte)])
  watched.state.claimElsewhere(300 * megabyte)
  expect(readingsOf(watched, 6)).toEqual([2, 4, 6])
})

test('S4 space is read after 100 ms, whatever has arrived', () => {
  const { space, state } = watch([disk(900 * megabyte)])
  const claim = space.claim(0)
  const before = state.readings
  state.now = 99
  claim.arrived(1)
  expect(state.readings).toBe(before)
  state.now = 100
  claim.arrived(1)
  expect(state.readings).toBe(before + 1)
})

test('S4 bytes that arrive after a reading count against it, and a new reading decides', () => {
  const spaces = [disk(600 * megabyte)]
  const { space, state } = watch(spaces)
  space.claim(0).arrived(megabyte)
  space.claim(498 * megabyte).release()
  expect(state.readings).toBe(1)
  spaces[0] = disk(599 * megabyte)
  expect(() => space.claim(499 * megabyte)).toThrow(/free space/)
  expect(state.readings).toBe(2)
})

test('S4 less space than the reserve refuses uploads, until there is more', () => {
  const spaces = [disk(50 * megabyte)]
  const { space } = watch(spaces)
  expect(() => space.claim(0)).toThrow(/free space/)
  expect(space.hasRoom()).toBe(false)
  spaces[0] = disk(200 * megabyte)
  expect(space.hasRoom()).toBe(true)
  space.claim(megabyte)
})

test('S4 without a file system of this machine, nothing is refused', () => {
  const watched = watch([])
  expect(readingsOf(watched, 200)).toEqual([])
  watched.space.claim(Number.MAX_SAFE_INTEGER)
})
