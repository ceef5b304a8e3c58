import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Locator } from 'playwright-core'
import sharp from 'sharp'
import { root } from '../architecture/sources.ts'
import { pdfOf } from '../harness/pdf.ts'

/** A picture with a colour gradient that differs for each seed. */
export const picture = (seed: number, width = 320, height = 240) => {
  const colour = (shift: number) => `hsl(${(seed * 47 + shift) % 360} 70% 55%)`
  return sharp(
    Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">
      <defs><linearGradient id="g"><stop stop-color="${colour(0)}"/><stop offset="1" stop-color="${colour(90)}"/></linearGradient></defs>
      <rect width="100%" height="100%" fill="url(#g)"/></svg>`),
  )
}

/** Two seconds of a tone, as WAV. */
export function tone(): Buffer<ArrayBuffer> {
  const rate = 8_000
  const samples = Buffer.from(
    Array.from(
      { length: rate * 2 },
      (_, at) => 128 + Math.round(60 * Math.sin((at * 440 * 2 * Math.PI) / rate)),
    ),
  )
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + samples.length, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(rate, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write('data', 36)
  head.writeUInt32LE(samples.length, 40)
  return Buffer.concat([head, samples])
}

export const clip = () => readFile(join(root, 'test/fixtures/clip.webm'))

/** A PDF of one page. */
export function pdf(): Buffer<ArrayBuffer> {
  const text = 'BT /F1 24 Tf 40 120 Td (The harbour) Tj ET'
  return pdfOf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${text.length} >>\nstream\n${text}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ])
}

/** A file name that contains markup and a script. */
export const hostileName = '<img src=x onerror="document.title=\'owned\'"><b>bold.png'

/** Twenty-five different files of common types, by name. */
export async function manyKinds(): Promise<ReadonlyMap<string, Buffer<ArrayBufferLike>>> {
  const frames = Buffer.concat([0, 1, 2].map((frame) => Buffer.alloc(64 * 64 * 3, frame * 90)))
  const animated = sharp(frames, { raw: { width: 64, height: 192, channels: 3, pageHeight: 64 } })
  return new Map<string, Buffer<ArrayBufferLike>>([
    ['harbour.jpg', await picture(1, 640, 480).jpeg().toBuffer()],
    ['upright.jpg', await picture(2, 480, 640).jpeg().toBuffer()],
    ['turned.jpg', await picture(3, 640, 320).withMetadata({ orientation: 6 }).jpeg().toBuffer()],
    ['screen.png', await picture(4).png().toBuffer()],
    ['see-through.png', await picture(5).ensureAlpha(0.5).png().toBuffer()],
    ['small.webp', await picture(6, 16, 16).webp().toBuffer()],
    ['wide.webp', await picture(7, 1600, 200).webp().toBuffer()],
    ['new.avif', await picture(8).avif({ effort: 0 }).toBuffer()],
    ['moving.gif', await animated.gif().toBuffer()],
    ['scan.tiff', await picture(9).tiff().toBuffer()],
    [
      'drawing.svg',
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>document.title="owned"</script></svg>'),
    ],
    [hostileName, await picture(10).png().toBuffer()],
    ['Möwen am Hafen — 海鷗.jpg', await picture(11).jpeg().toBuffer()],
    ['tone.wav', tone()],
    ['clip.webm', await clip()],
    ['report.pdf', pdf()],
    ['notes.txt', Buffer.from('Notes of the harbour.\n')],
    ['table.csv', Buffer.from('ship,length\nMaria,12\n')],
    ['data.json', Buffer.from('{"ships": 3}\n')],
    ['page.html', Buffer.from('<!doctype html><script>document.title="owned"</script>')],
    ['read.md', Buffer.from('# The harbour\n')],
    ['feed.xml', Buffer.from('<?xml version="1.0"?><feed/>')],
    ['archive.gz', gzipSync('The harbour, pressed.')],
    ['unknown', Buffer.from([7, 1, 4, 2, 250, 3])],
    ['empty.txt', Buffer.alloc(0)],
  ])
}

/** Writes files to a temporary directory; names may contain directories. */
export async function writeFiles(files: ReadonlyMap<string, Uint8Array>) {
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-files-'))
  const paths: string[] = []
  for (const [name, bytes] of files) {
    const path = join(directory, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, bytes)
    paths.push(path)
  }
  return {
    directory,
    paths,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}

/** Whether a picture is loaded and at least `width` pixels wide. */
export const isDrawn = (picture: Locator, width = 1): Promise<boolean> =>
  picture.evaluate((image, least) => image.complete && image.naturalWidth >= least, width)
