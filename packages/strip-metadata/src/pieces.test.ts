import { describe, expect, test } from 'vitest'
import { createByteSource, type Piece, UnreadableFile } from './pieces.ts'
import { planRemoval } from './plan-removal.ts'

const megabyte = 1024 * 1024

/** Plans a file, and counts the bytes that are fetched and the reads of the planner. */
async function planned(file: Buffer, type: string) {
  const counts = { fetched: 0, reads: 0 }
  const source = createByteSource(
    file.byteLength,
    async (position, length) => {
      counts.fetched += length
      return file.subarray(position, position + length)
    },
    megabyte,
  )
  const counted = new Proxy(source, {
    get: (target, name: keyof typeof source) => {
      if (name !== 'size') counts.reads += 1
      return target[name]
    },
  })
  const result: readonly Piece[] | UnreadableFile = await planRemoval(counted, type).then(
    ({ pieces }) => pieces,
    (error) => {
      if (error instanceof UnreadableFile) return error
      throw error
    },
  )
  return { ...counts, result }
}

describe('X4 a JPEG file is read about once', () => {
  const start = Buffer.from('ffd8ffc0000b080001000101011100', 'hex')
  const scan = Buffer.from('ffda0008010100003f00', 'hex')
  const end = Buffer.from('ffd9', 'hex')

  test('with thousands of scans before the rest of the file', async () => {
    const scans = Array.from({ length: 20_000 }, () => scan)
    const file = Buffer.concat([start, ...scans, Buffer.alloc(5 * megabyte, 1), end])
    const { fetched, result } = await planned(file, 'image/jpeg')
    expect(result).toEqual([{ from: 0, to: file.byteLength }])
    expect(fetched).toBeLessThan(1.5 * file.byteLength)
  })

  test('with a megabyte of fill bytes before a marker and in a scan', async () => {
    const fill = Buffer.alloc(megabyte, 0xff)
    const file = Buffer.concat([start, fill, scan, fill, end])
    const { fetched, reads, result } = await planned(file, 'image/jpeg')
    expect(result).not.toBeInstanceOf(Error)
    expect(fetched).toBeLessThan(2 * file.byteLength)
    expect(reads).toBeLessThan(100)
  })

  test('and refused with scans that are too short, or with more than 100,000 segments', async () => {
    const short = Buffer.concat([start, Buffer.from('ffda0002', 'hex'), end])
    expect((await planned(short, 'image/jpeg')).result).toBeInstanceOf(UnreadableFile)
    const many = Buffer.concat([start, ...Array.from({ length: 100_000 }, () => scan), end])
    expect((await planned(many, 'image/jpeg')).result).toBeInstanceOf(UnreadableFile)
  })
})

describe('X4 a TIFF file is read a few times', () => {
  const long = 4
  type Entry = readonly [tag: number, type: number, count: number, value: number]

  /** A file of directories, each followed by the next one, that share an array of zeros. */
  function tiff(directories: number, size: number, entriesOf: (array: number) => readonly Entry[]): Buffer {
    const count = entriesOf(0).length
    const length = 2 + count * 12 + 4
    const array = 8 + directories * length
    const file = Buffer.alloc(array + size)
    file.write('II*\0', 'latin1')
    file.writeUInt32LE(8, 4)
    for (let directory = 0; directory < directories; directory += 1) {
      let at = 8 + directory * length
      at = file.writeUInt16LE(count, at)
      for (const [tag, type, number, value] of entriesOf(array)) {
        at = file.writeUInt16LE(tag, at)
        at = file.writeUInt16LE(type, at)
        at = file.writeUInt32LE(number, at)
        at = file.writeUInt32LE(value, at)
      }
      file.writeUInt32LE(directory + 1 < directories ? at + 4 : 0, at)
    }
    return file
  }

  test('and refused if its directories have more than 10,000 directories in all', async () => {
    const file = (count: number) =>
      tiff(6, count * 4, (array) => [
        [256, long, 1, 1],
        [330, long, count, array],
      ])
    expect((await planned(file(1_000), 'image/tiff')).result).not.toBeInstanceOf(Error)
    expect((await planned(file(2_000), 'image/tiff')).result).toBeInstanceOf(UnreadableFile)
  })

  test('if many directories share long arrays, of which one number is needed', async () => {
    const count = 500_000
    const file = tiff(500, count * 4, (array) => [
      [262, long, count, array],
      [273, long, 1, 0],
      [279, long, count, array],
    ])
    const { fetched, result } = await planned(file, 'image/tiff')
    expect(result).not.toBeInstanceOf(Error)
    expect(fetched).toBeLessThan(file.byteLength)
  })

  test('if its directories are apart, each before the one that it follows', async () => {
    const [directories, distance] = [500, 10_000]
    const file = Buffer.alloc((directories + 1) * distance)
    file.write('II*\0', 'latin1')
    file.writeUInt32LE(directories * distance, 4)
    for (let at = directories * distance; at > 0; at -= distance) {
      file.set([1, 0, 0, 1, long, 0, 1, 0, 0, 0], at)
      file.writeUInt32LE(at - distance, at + 14)
    }
    const { fetched, result } = await planned(file, 'image/tiff')
    expect(result).not.toBeInstanceOf(Error)
    expect(fetched).toBeLessThan(4 * file.byteLength)
  })
})

test('X4 a planner cannot fetch more than four times the size of a file and 64 MiB', async () => {
  let fetched = 0
  const size = 100 * megabyte
  const source = createByteSource(
    size,
    async (_position, length) => {
      fetched += length
      return Buffer.alloc(length)
    },
    megabyte,
  )
  const readAll = async () => {
    for (let round = 0; round < 1_000; round += 1) await source.read(0, 2 * megabyte)
  }
  await expect(readAll()).rejects.toBeInstanceOf(UnreadableFile)
  expect(fetched).toBeLessThanOrEqual(4 * size + 64 * megabyte)
})
