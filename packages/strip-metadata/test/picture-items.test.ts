import { UnreadableFile } from '@mediabucket/strip-metadata'
import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { noise } from '../../../test/harness/pictures.ts'
import { box, bytesOf } from './boxes.ts'
import { secret, withoutMetadata } from './samples.ts'

const full = bytesOf([0, 4])

/** A HEIF file with these pictures, which are JPEG files, and the positions of their parts. */
function heif(
  pictures: readonly (readonly Buffer[])[],
  { copies = 1, properties = '' }: { readonly copies?: number; readonly properties?: string | Buffer } = {},
): { readonly bytes: Buffer; readonly places: readonly number[] } {
  const brand = box('ftyp', 'mif1\0\0\0\0mif1')
  const items = Array.from({ length: copies }, () => pictures).flat()
  const list = (first: number) => {
    const places = new Map<Buffer, number>()
    let position = first
    for (const part of pictures.flat()) {
      places.set(part, position)
      position += part.byteLength
    }
    const extents = (parts: readonly Buffer[]) =>
      parts.map((part) => bytesOf([places.get(part) ?? 0, 4], [part.byteLength, 4]))
    const content = box(
      'meta',
      full,
      box('hdlr', bytesOf([0, 4], [0, 4]), 'pict', Buffer.alloc(13)),
      box(
        'iinf',
        bytesOf([0, 4], [items.length, 2]),
        ...items.map((_, id) => box('infe', bytesOf([0x0200_0000, 4], [id, 2], [0, 2]), 'jpeg', '\0')),
      ),
      box('iprp', box('ipco', properties)),
      box(
        'iloc',
        bytesOf([0, 4], [0x4400, 2], [items.length, 2]),
        ...items.flatMap((parts, id) => [bytesOf([id, 2], [0, 2], [parts.length, 2]), ...extents(parts)]),
      ),
    )
    return { content, places: [...places.values()] }
  }
  const first = brand.length + list(0).content.length + 8
  const { content, places } = list(first)
  return { bytes: Buffer.concat([brand, content, box('mdat', ...pictures.flat())]), places }
}

async function photo(): Promise<Buffer> {
  const jpeg = await noise(32)
    .withIccProfile('p3')
    .withExif({ IFD0: { Make: secret }, IFD3: { GPSLatitude: '48/1 7/1 24/1' } })
    .jpeg({ progressive: true })
    .toBuffer()
  const comment = Buffer.concat([Buffer.from([0xff, 0xfe, 0, 2 + secret.length]), Buffer.from(secret)])
  const scan = jpeg.lastIndexOf(Buffer.from([0xff, 0xda]))
  return Buffer.concat([
    jpeg.subarray(0, 2),
    // JFIF with a thumbnail of 1 × 1 pixels.
    Buffer.from([0xff, 0xe0, 0, 19, ...Buffer.from('JFIF\0'), 1, 1, 0, 0, 1, 0, 1, 1, 1, 7, 8, 9]),
    jpeg.subarray(2, scan),
    comment,
    jpeg.subarray(scan),
    Buffer.from(secret),
  ])
}

describe('X2 the metadata in a JPEG file that is a picture of a HEIF file', () => {
  test('becomes zeros, and the pixels and colours stay', async () => {
    const sent = await photo()
    const { bytes, places } = heif([[sent]])
    const stored = await withoutMetadata(bytes, 'image/heif')
    expect(stored.byteLength).toBe(bytes.byteLength)
    expect([bytes.includes(secret), stored.includes(secret)]).toEqual([true, false])
    const picture = stored.subarray(places[0])
    expect(await sharp(picture).raw().toBuffer()).toEqual(await sharp(sent).raw().toBuffer())
    const { exif, icc } = await sharp(picture).metadata()
    expect([exif, icc]).toEqual([undefined, (await sharp(sent).metadata()).icc])
    expect((await withoutMetadata(stored, 'image/heif')).equals(stored)).toBe(true)
  })

  test('becomes zeros once if two pictures are the same file', async () => {
    const { bytes } = heif([[await photo()]], { copies: 2 })
    expect((await withoutMetadata(bytes, 'image/heif')).includes(secret)).toBe(false)
  })

  test('X4 cannot be found if the file is in parts, damaged or overlaps another one', async () => {
    const sent = await photo()
    const overlapping = heif([[sent], [sent.subarray(1)]]).bytes
    // The second picture begins in the first one.
    const at = overlapping.indexOf('iloc')
    overlapping.writeUInt32BE(overlapping.readUInt32BE(at + 18) + 1, at + 32)
    for (const bytes of [
      heif([[sent.subarray(0, 100), sent.subarray(100)]]).bytes,
      heif([[sent]], { properties: box('jpgC', sent.subarray(0, 100)) }).bytes,
      heif([[sent.subarray(1)]]).bytes,
      overlapping,
    ])
      await expect(withoutMetadata(bytes, 'image/heif')).rejects.toBeInstanceOf(UnreadableFile)
  })
})
