import { UnreadableFile } from '@mediabucket/strip-metadata'
import { beforeAll, describe, expect, test } from 'vitest'
import { box, bytesOf, withBox } from './boxes.ts'
import { changedBy, needPrograms, packetsOf, secret, withoutMetadata } from './samples.ts'

const toFormats = ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd']
const film = (name: string, ...options: readonly string[]) =>
  changedBy(name, Buffer.alloc(0), 'ffmpeg', (path) => [
    ...['-v', 'error', '-y', '-f', 'lavfi', '-i', 'testsrc2=s=64x64:d=1:r=10', ...options, path],
  ])
const sound = ['-f', 'lavfi', '-i', 'sine=d=1', '-shortest']
const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast']

describe('X2 metadata in tracks', () => {
  beforeAll(needPrograms)

  test.each([
    ['a.mp4', 'video/mp4', 'aac', 'mp4a'],
    ['a.mov', 'video/quicktime', 'aac', 'mp4a'],
    ['a.mov', 'video/quicktime', 'pcm_s24le', 'in24'],
    ['a.mov', 'video/quicktime', 'alac', 'alac'],
  ])('in the formats of %s (%s, %s) is removed', async (name, type, codec, format) => {
    const plain = await film(name, ...sound, ...h264, '-c:a', codec)
    const sent = ['uuid', 'udta', 'meta', 'name', 'abcd'].reduce(
      (bytes, kind) =>
        ['avc1', format].reduce(
          (each, parent) => withBox(each, [...toFormats, parent], box(kind, Buffer.alloc(32), secret)),
          bytes,
        ),
      plain,
    )
    expect(await packetsOf(name, sent)).toBe(await packetsOf(name, plain))
    const stored = await withoutMetadata(sent, type)
    expect([sent.includes(secret), stored.includes(secret)]).toEqual([true, false])
    expect(await packetsOf(name, stored)).toBe(await packetsOf(name, plain))
    expect(await packetsOf(name, stored, true)).toBe(await packetsOf(name, plain, true))
  })

  test('of spherical videos is removed, and the form of the pictures kept', async () => {
    const plain = await film('a.mp4', ...h264)
    const projection = box('proj', box('prhd', Buffer.alloc(16)), box('equi', Buffer.alloc(20)))
    const spherical = box(
      'sv3d',
      box('svhd', Buffer.alloc(4), `${secret}\0`),
      box('uuid', secret),
      projection,
    )
    const sent = withBox(plain, [...toFormats, 'avc1'], spherical)
    const stored = await withoutMetadata(sent, 'video/mp4')
    expect(stored.includes(secret)).toBe(false)
    expect(stored.includes(projection)).toBe(true)
  })

  test('in a video of 256 colours with a table of its own is removed, and the table kept', async () => {
    const plain = await film('a.mov', '-c:v', 'qtrle', '-pix_fmt', 'rgb24')
    const at = plain.indexOf('rle ') + 4
    const indexed = Buffer.from(plain)
    indexed.writeUInt16BE(8, at + 74)
    indexed.writeUInt16BE(0, at + 76)
    // ffmpeg writes boxes after the format, which the table replaces.
    const size = indexed.readUInt32BE(at - 8)
    indexed.fill(0, at + 78, at - 8 + size)
    const colours = (size - 86 - 8) >> 3
    indexed.writeUInt16BE(colours - 1, at + 78 + 6)
    indexed.fill('colour', at + 78 + 8, at + 78 + 8 + colours * 8)
    const table = indexed.subarray(at + 78, at + 78 + 8 + colours * 8)
    const stored = await withoutMetadata(
      withBox(indexed, [...toFormats, 'rle '], box('uuid', secret)),
      'video/quicktime',
    )
    expect([stored.includes(secret), stored.includes(table)]).toEqual([false, true])
  })

  test('of time codes is removed with its track', async () => {
    const plain = await film('a.mov', ...h264)
    const timed = await film('a.mov', ...h264, '-timecode', '10:11:12:13')
    const sent = withBox(timed, [...toFormats, 'tmcd'], box('name', secret))
    const stored = await withoutMetadata(sent, 'video/quicktime')
    expect(stored.includes(secret)).toBe(false)
    expect([sent.includes('tmcd'), stored.includes('tmcd')]).toEqual([true, false])
    // 10:11:12:13 in frames, of which there are 10 a second.
    const code = bytesOf([((10 * 60 + 11) * 60 + 12) * 10 + 13 - 10, 4])
    expect(stored.includes(code)).toBe(false)
    expect(await packetsOf('a.mov', stored)).toBe(await packetsOf('a.mov', plain))
  })

  test('after frames of one size is removed', async () => {
    const plain = await film('a.mov', '-c:v', 'rawvideo', '-pix_fmt', 'uyvy422', '-movflags', '+faststart')
    const item = plain.indexOf('mdat') - 4
    const sent = Buffer.concat([plain.subarray(0, item), box('mdat', plain.subarray(item + 8), secret)])
    const stored = await withoutMetadata(sent, 'video/quicktime')
    expect(stored.includes(secret)).toBe(false)
    expect(await packetsOf('a.mov', stored)).toBe(await packetsOf('a.mov', plain))
  })
})

describe('X2 in a fragmented video', () => {
  beforeAll(needPrograms)

  const fragmented = (...flags: readonly string[]) =>
    film('a.mp4', ...sound, ...h264, '-g', '5', '-movflags', ['frag_keyframe', ...flags].join('+'))

  test.each([
    ['positions in the file', []],
    ['positions in fragments', ['empty_moov', 'default_base_moof']],
    ['positions of earlier tracks', ['empty_moov', 'omit_tfhd_offset']],
    ['one sample in each run', ['empty_moov', 'separate_moof']],
  ] as const)('with %s, data that no fragment names is removed', async (_what, flags) => {
    const plain = await fragmented(...flags)
    const sent = Buffer.concat([plain, box('mdat', secret)])
    const stored = await withoutMetadata(sent, 'video/mp4')
    expect(stored.includes(secret)).toBe(false)
    expect(await packetsOf('a.mp4', stored)).toBe(await packetsOf('a.mp4', plain))
    expect(await packetsOf('a.mp4', stored, true)).toBe(await packetsOf('a.mp4', plain, true))
  })

  test('that was interrupted, the fragments before are kept', async () => {
    const plain = await fragmented('empty_moov', 'default_base_moof', 'skip_trailer')
    const last = plain.lastIndexOf('mdat') - 4
    const stored = await withoutMetadata(plain.subarray(0, last + 100), 'video/mp4')
    expect(await packetsOf('a.mp4', stored)).toBe(await packetsOf('a.mp4', plain.subarray(0, last)))
  })

  test('X4 with samples outside of its data is refused', async () => {
    const plain = await fragmented('empty_moov', 'default_base_moof')
    const changed = Buffer.from(plain)
    // The position of the samples of the first run.
    const at = changed.indexOf('trun') + 12
    changed.writeInt32BE(changed.readInt32BE(at) - 100, at)
    await expect(withoutMetadata(changed, 'video/mp4')).rejects.toBeInstanceOf(UnreadableFile)
  })
})

test('X2 a track whose last sample is empty and begins at the end of the data is stored', async () => {
  const brand = box('ftyp', 'isom\0\0\0\0isom')
  const movie = (first: number) =>
    box(
      'moov',
      box(
        'trak',
        box('tkhd', Buffer.alloc(84)),
        box(
          'mdia',
          box('hdlr', bytesOf([0, 4], [0, 4]), 'subt', Buffer.alloc(13)),
          box(
            'minf',
            box(
              'stbl',
              box('stsd', bytesOf([0, 4], [1, 4]), box('stpp', Buffer.alloc(11))),
              box('stco', bytesOf([0, 4], [2, 4], [first, 4], [first + 3, 4])),
              box('stsc', bytesOf([0, 4], [1, 4], [1, 4], [1, 4], [1, 4])),
              box('stsz', bytesOf([0, 4], [0, 4], [2, 4], [3, 4], [0, 4])),
            ),
          ),
        ),
      ),
    )
  const first = brand.length + movie(0).length + 8
  const sent = Buffer.concat([brand, movie(first), box('mdat', 'abc')])
  expect((await withoutMetadata(sent, 'video/mp4')).equals(sent)).toBe(true)
})
