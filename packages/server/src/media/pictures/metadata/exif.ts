/** The orientation in an Exif block (TIFF structure), 1 to 8; 1, the default, if there is none or the block is damaged. */
export function orientationOf(block: Buffer): number {
  const isPrefixed = block.toString('latin1', 0, exifPrefix.length) === exifPrefix
  const tiff = isPrefixed ? block.subarray(exifPrefix.length) : block
  const isLittle = tiff.toString('latin1', 0, 2) === 'II'
  if (!isLittle && tiff.toString('latin1', 0, 2) !== 'MM') return 1
  const number = (at: number, size: number) =>
    isLittle ? tiff.readUIntLE(at, size) : tiff.readUIntBE(at, size)
  try {
    const directory = number(4, 4)
    const count = number(directory, 2)
    for (let entry = 0; entry < count; entry += 1) {
      const at = directory + 2 + entry * 12
      if (number(at, 2) !== orientationTag) continue
      const size = integerSizes.get(number(at + 2, 2))
      const value = size === undefined ? 1 : number(at + 8, size)
      return value >= 1 && value <= 8 ? value : 1
    }
  } catch {
    // The block ends before.
  }
  return 1
}

/** What precedes the TIFF structure in JPEG files, and in some WebP files. */
export const exifPrefix = 'Exif\0\0'

const orientationTag = 0x0112

/** Bytes of the integers that decoders accept for an orientation, by their types. Exif has SHORT (3); some programs write BYTE or LONG. */
const integerSizes: ReadonlyMap<number, number> = new Map([
  ...([1, 6].map((type) => [type, 1]) as [number, number][]),
  ...([3, 8].map((type) => [type, 2]) as [number, number][]),
  ...([4, 9].map((type) => [type, 4]) as [number, number][]),
])

/** An Exif block with the orientation and nothing else. */
export const orientationBlock = (orientation: number): Buffer =>
  Buffer.from([
    ...[0x4d, 0x4d, 0, 42, 0, 0, 0, 8],
    ...[0, 1, orientationTag >> 8, orientationTag & 0xff, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0],
    ...[0, 0, 0, 0],
  ])

/** An Exif block without entries. */
export const emptyBlock: Uint8Array = Buffer.from([0x4d, 0x4d, 0, 42, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0])
