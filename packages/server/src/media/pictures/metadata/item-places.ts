import type { Box } from './boxes.ts'
import { type Range, UnreadableFile } from './pieces.ts'

/** Where the bytes of each item are, by its id. Items that consist of parts of other items have none. */
export type ItemPlaces = ReadonlyMap<number, readonly Range[]>

/** Bytes in the file, in the box `idat`, and in other items. */
const inFile = 0
const inDataBox = 1
const inItems = 2

const maxExtents = 100_000

/** Reads the box `iloc`. Throws UnreadableFile. */
export function readItemPlaces(table: Buffer, data: Box | null, fileSize: number): ItemPlaces {
  const places = new Map<number, Range[]>()
  let position = 0
  const number = (size: number): number => {
    const start = position
    position += size
    if (position > table.byteLength) throw damaged()
    if (size === 0) return 0
    if (size !== 8) return table.readUIntBE(start, size)
    const value = table.readBigUInt64BE(start)
    if (value > Number.MAX_SAFE_INTEGER) throw damaged()
    return Number(value)
  }
  const version = number(1)
  if (version > 2) throw damaged()
  position = 4
  const [sizes, moreSizes] = [number(1), number(1)]
  const [offsetSize, lengthSize, baseSize] = [sizes >> 4, sizes & 15, moreSizes >> 4]
  const indexSize = version === 0 ? 0 : moreSizes & 15
  if (![offsetSize, lengthSize, baseSize, indexSize].every((size) => [0, 4, 8].includes(size)))
    throw damaged()
  const idSize = version === 2 ? 4 : 2
  let count = 0
  for (let items = number(idSize); items > 0; items -= 1) {
    const id = number(idSize)
    const method = version === 0 ? inFile : number(2) & 15
    if (number(2) !== 0) throw new UnreadableFile('bytes of a picture are in another file')
    const base = number(baseSize)
    const ranges: Range[] = []
    for (let extents = number(2); extents > 0; extents -= 1) {
      count += 1
      if (count > maxExtents) throw damaged()
      number(indexSize)
      const offset = base + number(offsetSize)
      const length = number(lengthSize)
      if (method === inItems) continue
      if (method !== inFile && method !== inDataBox) throw damaged()
      const start = method === inFile ? offset : (data?.data ?? fileSize) + offset
      const limit = method === inFile ? fileSize : (data?.end ?? 0)
      if (start + length > limit) throw damaged()
      ranges.push({ start, end: start + length })
    }
    if (places.has(id)) throw damaged()
    places.set(id, ranges)
  }
  return places
}

const damaged = () => new UnreadableFile('not a file of pictures: the table of its items is damaged')
