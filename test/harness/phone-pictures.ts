import { execFile } from 'node:child_process'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { needTools } from './tools.ts'

const run = promisify(execFile)

/** The side of the tiles of phones, in pixels. */
const tile = 512

interface PhoneOptions {
  /** Counter-clockwise turns by 90 degrees, which readers apply (`irot`). */
  readonly turns?: number
  /** The orientation in Exif, which phones write besides and readers of HEIC do not apply. */
  readonly orientation?: number
  /** The size that the grid states, if it is not that of its tiles; it repeats the first tile. */
  readonly declared?: { readonly width: number; readonly height: number }
}

/** A HEIC picture as phones write it: a grid of HEVC tiles, which ffmpeg encodes from this PNG of this size. */
export async function phonePicture(
  png: Buffer,
  size: { readonly width: number; readonly height: number },
  { turns = 0, orientation = 1, declared }: PhoneOptions = {},
): Promise<Buffer<ArrayBuffer>> {
  needTools('ffmpeg', 'heif-enc')
  const [columns, rows] = [Math.ceil(size.width / tile), Math.ceil(size.height / tile)]
  const video = await tilesOf(png, columns, rows)
  const tiles = framesOf(video)
  const { width, height } = declared ?? size
  const shape = declared
    ? { columns: Math.ceil(width / tile), rows: Math.ceil(height / tile) }
    : { columns, rows }
  const ids = tiles.map((_, index) => index + 1)
  const [grid, exif] = [ids.length + 1, ids.length + 2]
  const used = Array.from(
    { length: shape.columns * shape.rows },
    (_, index) => ids[declared ? 0 : index] ?? 1,
  )
  const contents = [
    ...tiles,
    Buffer.concat([Buffer.of(0, 1, shape.rows - 1, shape.columns - 1), u32(width), u32(height)]),
    Buffer.concat([
      u32(0),
      Buffer.from('II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0', 'latin1'),
      Buffer.of(orientation),
      Buffer.alloc(7),
    ]),
  ]
  const properties = [
    boxOf(video, 'hvcC'),
    fullBox('ispe', 0, 0, u32(tile), u32(tile)),
    fullBox('ispe', 0, 0, u32(width), u32(height)),
    box('irot', Buffer.of(turns)),
  ]
  const associations = [
    ...ids.map((id) => [u16(id), Buffer.of(2, 0x81, 2)]),
    [u16(grid), turns === 0 ? Buffer.of(1, 3) : Buffer.of(2, 3, 0x84)],
  ].flat()
  const metaAt = (base: number) => {
    let offset = base
    const places = contents.map((content, index) => {
      const place = Buffer.concat([u16(index + 1), u16(0), u16(1), u32(offset), u32(content.length)])
      offset += content.length
      return place
    })
    return fullBox(
      'meta',
      0,
      0,
      fullBox('hdlr', 0, 0, u32(0), Buffer.from('pict'), Buffer.alloc(13)),
      fullBox('pitm', 0, 0, u16(grid)),
      fullBox('iloc', 0, 0, Buffer.of(0x44, 0), u16(places.length), ...places),
      fullBox(
        'iinf',
        0,
        0,
        u16(contents.length),
        ...ids.map((id) => infe(id, 'hvc1', true)),
        infe(grid, 'grid', false),
        infe(exif, 'Exif', false),
      ),
      fullBox(
        'iref',
        0,
        0,
        box('dimg', u16(grid), u16(used.length), ...used.map(u16)),
        box('cdsc', u16(exif), u16(1), u16(grid)),
      ),
      box('iprp', box('ipco', ...properties), fullBox('ipma', 0, 0, u32(ids.length + 1), ...associations)),
    )
  }
  const start = box('ftyp', Buffer.from('heic'), u32(0), Buffer.from('mif1heic'))
  const meta = metaAt(start.length + metaAt(0).length + 8)
  return Buffer.concat([start, meta, box('mdat', ...contents)])
}

/** An MP4 file whose frames are the tiles of a picture, each for itself. */
async function tilesOf(png: Buffer, columns: number, rows: number): Promise<Buffer> {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-phone-'))
  const [from, to] = [join(directory.path, 'picture.png'), join(directory.path, 'tiles.mp4')]
  await writeFile(from, png)
  await run('ffmpeg', [
    ...['-v', 'error', '-i', from, '-frames:v', `${columns * rows}`],
    ...[
      '-vf',
      `scale=${columns * tile}:${rows * tile}:flags=neighbor,untile=${columns}x${rows},format=yuv420p`,
    ],
    ...[
      '-c:v',
      'libx265',
      '-preset',
      'ultrafast',
      '-x265-params',
      'keyint=1:log-level=none:info=0',
      '-tag:v',
      'hvc1',
      to,
    ],
  ])
  return await readFile(to)
}

/** The frames of an MP4 file with one track. */
function framesOf(video: Buffer): Buffer[] {
  const sizes = boxOf(video, 'stsz')
  let position = video.indexOf('mdat') + 4
  return Array.from({ length: sizes.readUInt32BE(16) }, (_, index) => {
    const start = position
    position += sizes.readUInt32BE(12) || sizes.readUInt32BE(20 + 4 * index)
    return video.subarray(start, position)
  })
}

function boxOf(video: Buffer, type: string): Buffer {
  const start = video.indexOf(type) - 4
  return video.subarray(start, start + video.readUInt32BE(start))
}

const number = (size: number) => (value: number) => {
  const bytes = Buffer.alloc(size)
  bytes.writeUIntBE(value, 0, size)
  return bytes
}
const [u16, u32] = [number(2), number(4)]

const box = (type: string, ...parts: Buffer[]) => {
  const data = Buffer.concat(parts)
  return Buffer.concat([u32(data.length + 8), Buffer.from(type), data])
}
const fullBox = (type: string, version: number, flags: number, ...parts: Buffer[]) =>
  box(type, u32(version * 2 ** 24 + flags), ...parts)

const infe = (id: number, kind: string, isHidden: boolean) =>
  fullBox('infe', 2, isHidden ? 1 : 0, u16(id), u16(0), Buffer.from(kind), Buffer.alloc(1))
