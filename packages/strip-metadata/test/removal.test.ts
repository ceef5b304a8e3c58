import sharp from 'sharp'
import { beforeAll, describe, expect, test } from 'vitest'
import { noise } from '../../../test/harness/pictures.ts'
import { changedBy, needPrograms, packetsOf, secret, tagged, tagsOf, withoutMetadata } from './samples.ts'

interface Sample {
  readonly type: string
  readonly make: () => Promise<Buffer>
}

const picture = () => noise(64)
const profiled = () => picture().withIccProfile('p3')

const pictures: Readonly<Record<string, Sample>> = {
  'baseline.jpg': { type: 'image/jpeg', make: () => profiled().jpeg().toBuffer() },
  'progressive.jpg': { type: 'image/jpeg', make: () => profiled().jpeg({ progressive: true }).toBuffer() },
  'cmyk.jpg': { type: 'image/jpeg', make: () => picture().toColourspace('cmyk').jpeg().toBuffer() },
  'a.png': { type: 'image/png', make: () => profiled().png().toBuffer() },
  'palette.png': { type: 'image/png', make: () => picture().png({ palette: true }).toBuffer() },
  'a.webp': { type: 'image/webp', make: () => profiled().webp().toBuffer() },
  'lossless.webp': {
    type: 'image/webp',
    make: () => picture().ensureAlpha(0.5).webp({ lossless: true }).toBuffer(),
  },
  'strips.tiff': { type: 'image/tiff', make: () => profiled().tiff({ compression: 'lzw' }).toBuffer() },
  'tiles.tiff': {
    type: 'image/tiff',
    make: () => picture().tiff({ tile: true, tileWidth: 16, tileHeight: 16, pyramid: true }).toBuffer(),
  },
  'big.tiff': {
    type: 'image/tiff',
    make: () => picture().withXmp(`<x>${secret}</x>`).tiff({ bigtiff: true }).toBuffer(),
  },
  'a.avif': { type: 'image/avif', make: () => profiled().avif({ effort: 0 }).toBuffer() },
  'a.heic': {
    type: 'image/heic',
    make: async () =>
      changedBy('a', await picture().png().toBuffer(), 'sh', (path) => [
        ...['-c', 'mv "$0" "$0.png" && heif-enc -q 50 "$0.png" -o "$0.heic" && mv "$0.heic" "$0"', path],
      ]),
  },
}

const film = (name: string, ...options: readonly string[]) =>
  changedBy(name, Buffer.alloc(0), 'ffmpeg', (path) => [
    ...['-v', 'error', '-y', '-f', 'lavfi', '-i', 'testsrc2=s=160x90:d=1:r=10'],
    ...['-f', 'lavfi', '-i', 'sine=d=1', '-shortest', ...options],
    ...['-metadata:s:v', 'handler_name=SecretCamera', '-metadata', 'location=+48.1234+011.5678/', path],
  ])
const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-c:a', 'aac']

const films: Readonly<Record<string, Sample>> = {
  'a.mp4': { type: 'video/mp4', make: () => film('a.mp4', ...h264) },
  'start.mp4': { type: 'video/mp4', make: () => film('a.mp4', ...h264, '-movflags', '+faststart') },
  'a.mov': { type: 'video/quicktime', make: () => film('a.mov', ...h264) },
  'pcm.mov': { type: 'video/quicktime', make: () => film('a.mov', '-c:v', 'mjpeg', '-c:a', 'pcm_s16le') },
  'a.3gp': { type: 'video/3gpp', make: () => film('a.3gp', '-c:v', 'mpeg4', '-c:a', 'aac') },
  // exiftool does not write fragmented files.
  'big-fragmented.mp4': {
    type: 'video/mp4',
    make: () => film('a.mp4', ...h264, '-g', '5', '-movflags', 'frag_keyframe+empty_moov'),
  },
}

/** Tags that describe pixels, colours, streams and the structure of a file. */
const groups =
  /^(JFIF|ICC\S*|PNG|PNG-cICP|PNG-pHYs|RIFF|IFD\d|SubIFD\d*|Adobe|Meta|QuickTime|Track\d|VP8\S*):/
/** The metadata among them. Boxes of videos have dates and names too, which are empty. */
const personal =
  /^(?!ICC|QuickTime|Track).*(GPS|Make|Model|Serial|Lens|Artist|Creator|Copyright|Software|Comment|Description|Date|Thumbnail|Preview)/

const sent = new Map<string, Buffer>()
const stored = new Map<string, Buffer>()
let tags = new Map<string, string[]>()
const samples = { ...pictures, ...films }

const bytesOf = (files: ReadonlyMap<string, Buffer>, name: string): Buffer => {
  const bytes = files.get(name)
  if (bytes === undefined) throw new Error(`no sample ${name}`)
  return bytes
}

describe('X2 metadata is removed', () => {
  beforeAll(needPrograms)

  beforeAll(async () => {
    const made = await Promise.all(
      Object.entries(samples).map(async ([name, { make }]) => [name, await make()] as const),
    )
    for (const [name, bytes] of await tagged(new Map(made))) {
      sent.set(name, bytes)
      stored.set(name, await withoutMetadata(bytes, samples[name]?.type ?? ''))
    }
    tags = await tagsOf(stored)
  })

  test.each(Object.entries(samples))('from %s, and nothing else', async (name, { type }) => {
    const [before, after] = [bytesOf(sent, name), bytesOf(stored, name)]
    expect([before.includes(secret), after.includes(secret)]).toEqual([true, false])
    expect(after.includes('48.1234')).toBe(false)
    const found = tags.get(name) ?? []
    expect(found.length).toBeGreaterThan(0)
    expect(found.filter((tag) => !groups.test(tag) || personal.test(tag))).toEqual([])
    // What is stored once is stored the same again.
    expect((await withoutMetadata(after, type)).equals(after)).toBe(true)
  })

  test.each(Object.keys(pictures))(
    'from %s, which keeps its pixels, colours and orientation',
    async (name) => {
      const [before, after] = [bytesOf(sent, name), bytesOf(stored, name)]
      expect(await pixelsOf(name, after)).toEqual(await pixelsOf(name, before))
      if (name === 'a.heic') return
      const [old, kept] = await Promise.all([before, after].map((bytes) => sharp(bytes).metadata()))
      expect(kept?.icc).toEqual(old?.icc)
      // HEIC and AVIF have an orientation besides that of Exif. exiftool does not write BigTIFF.
      if (!['a.avif', 'big.tiff'].includes(name)) expect(kept?.orientation).toBe(6)
      expect(kept?.autoOrient).toEqual(name === 'a.avif' ? kept?.autoOrient : old?.autoOrient)
    },
  )

  test.each(Object.keys(films))('from %s, which keeps its packets and their times', async (name) => {
    const [before, after] = [bytesOf(sent, name), bytesOf(stored, name)]
    expect(await packetsOf(name, after)).toBe(await packetsOf(name, before))
    if (name === 'a.mov') expect(await packetsOf(name, after, true)).toBe(await packetsOf(name, before, true))
  })
})

/** The pixels of all pages. */
async function pixelsOf(name: string, bytes: Buffer): Promise<string[]> {
  const decoded =
    name === 'a.heic'
      ? await changedBy('a.heic', bytes, 'sh', (path) => [
          ...['-c', 'heif-convert "$0" "$0.png" >/dev/null && mv "$0.png" "$0"', path],
        ])
      : bytes
  const { pages = 1 } = await sharp(decoded).metadata()
  const pixels = Array.from({ length: pages }, (_, page) => sharp(decoded, { page }).raw().toBuffer())
  return (await Promise.all(pixels)).map((each) => each.toString('base64'))
}
