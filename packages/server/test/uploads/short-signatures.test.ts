import { execFile } from 'node:child_process'
import { mkdtempDisposable, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { seededRandom } from '../../../../test/harness/random.ts'
import { needTools } from '../../../../test/harness/tools.ts'
import { newItemId } from '../../src/core/ids.ts'
import { storedType } from '../../src/core/stored-type.ts'
import { headLength } from '../../src/storage/blobs/blobs.ts'
import { sniffType } from '../../src/uploads/file-type.ts'

const run = promisify(execFile)

const fileOf = (bytes: Uint8Array) => ({
  ...{ id: newItemId(), handle: 'test', sha256: new Uint8Array(32) },
  ...{ size: bytes.byteLength, head: bytes.subarray(0, headLength) },
})
const sniff = async (bytes: Uint8Array) =>
  (await sniffType({ peek: async () => new Blob([Uint8Array.from(bytes)]) }, fileOf(bytes))) ?? null

const random = (choose: (limit: number) => number, length: number) =>
  Buffer.from(Array.from({ length }, () => choose(256)))

/** How the library detects types by few bytes, and how often one in a thousand files with random bytes behind them may have such a type. */
const signatures: readonly (readonly [hex: string, mime: string, most: number])[] = [
  ['00000100', 'image/x-icon', 0],
  ['00000200', 'image/x-icon', 0],
  ['000001ba', 'video/MP2P', 30],
  ['000001ba', 'video/MP1S', 30],
  ['000001b3', 'video/mpeg', 250],
  ['0001000000', 'font/ttf', 0],
  ['0b77', 'audio/vnd.dolby.dd-raw', 150],
  ['7801', 'application/x-apple-diskimage', 0],
  ['1f9d', 'application/x-compress', 100],
  ['1fa0', 'application/x-compress', 0],
  ['1f8b08', 'application/gzip', 10],
  ['c771', 'application/x-cpio', 10],
  ['60ea', 'application/x-arj', 10],
  ['4949bc', 'image/vnd.ms-photo', 10],
  ['fffb', 'audio/mpeg', 10],
  ['fff1', 'audio/aac', 10],
  ['ffe3', 'audio/mpeg', 10],
]

const files = 150

test('U7 random bytes behind a short signature are seldom of its type', async () => {
  const choose = seededRandom()
  const found: unknown[] = []
  for (const [hex, mime, most] of signatures) {
    let count = 0
    for (let nth = 0; nth < files; nth += 1) {
      const bytes = Buffer.concat([Buffer.from(hex, 'hex'), random(choose, 1_000 + choose(5_000))])
      if ((await sniff(bytes))?.mime === mime) count += 1
    }
    // By chance there can be more.
    if (count > (1.5 * files * most) / 1_000 + 5) found.push({ hex, mime, count })
  }
  expect(found).toEqual([])
})

test('U7 a TGA picture of any kind is not taken for an icon or a cursor', async () => {
  const choose = seededRandom()
  for (const kind of [1, 2, 3, 9, 10, 11])
    for (const size of [0, 20, 5_000]) {
      const header = random(choose, 18)
      header.set([0, kind === 1 || kind === 9 ? 1 : 0, kind])
      if (header[1] === 0) header.fill(0, 3, 8)
      const bytes = Buffer.concat([header, random(choose, size)])
      const sniffed = await sniff(bytes)
      expect(sniffed).toBeNull()
      const type = storedType({ sniffed, declared: null, filename: 'a.tga', start: fileOf(bytes) })
      expect(type).toEqual({ contentType: 'image/x-tga', extension: 'tga' })
    }
})

/** A directory of pictures, with the numbers behind their colours: planes and depth of icons, the place of cursors. */
function iconOf(type: 1 | 2, pictures: readonly Buffer[], numbers: readonly [number, number]): Buffer {
  const directory = Buffer.alloc(6 + pictures.length * 16)
  directory.writeUInt16LE(type, 2)
  directory.writeUInt16LE(pictures.length, 4)
  let position = directory.length
  for (const [index, picture] of pictures.entries()) {
    const at = 6 + index * 16
    directory.set([16, 16, 0, 0], at)
    directory.writeUInt16LE(numbers[0], at + 4)
    directory.writeUInt16LE(numbers[1], at + 6)
    directory.writeUInt32LE(picture.length, at + 8)
    directory.writeUInt32LE(position, at + 12)
    position += picture.length
  }
  return Buffer.concat([directory, ...pictures])
}

test('U7 icons and cursors have their type, also with many and large pictures', async () => {
  const png = await sharp({ create: { width: 16, height: 16, channels: 4, background: 'red' } })
    .png()
    .toBuffer()
  const bitmap = Buffer.concat([Buffer.of(40, 0, 0, 0), Buffer.alloc(2_000)])
  for (const pictures of [[png], [bitmap], [bitmap, png], Array.from({ length: 40 }, () => bitmap)]) {
    expect(await sniff(iconOf(1, pictures, [1, 32]))).toMatchObject({ mime: 'image/x-icon', ext: 'ico' })
    expect(await sniff(iconOf(2, pictures, [7, 9]))).toMatchObject({ mime: 'image/x-icon', ext: 'cur' })
  }
})

test('U7 a video whose first box has the length of a signature is a video', async () => {
  for (const length of [0x100, 0x200, 0x1b3]) {
    const box = Buffer.alloc(length + 5_000)
    box.writeUInt32BE(length)
    box.write('ftypisom', 4)
    expect(await sniff(box)).toMatchObject({ mime: 'video/mp4' })
  }
})

test.each([
  ['mp3', 'audio/mpeg', ['-write_id3v2', '0', '-write_xing', '0']],
  ['mp3', 'audio/mpeg', ['-id3v2_version', '0', '-ar', '22050', '-b:a', '24k']],
  ['mp2', 'audio/mpeg', []],
  ['aac', 'audio/aac', []],
  ['ac3', 'audio/vnd.dolby.dd-raw', []],
  ['eac3', 'audio/vnd.dolby.dd-raw', ['-f', 'eac3']],
  ['mpg', 'video/MP1S', []],
  ['vob', 'video/MP2P', []],
  ['m1v', 'video/mpeg', []],
] as const)('U7 a file %s of ffmpeg is %s', async (extension, mime, options) => {
  needTools('ffmpeg')
  const isSound = mime.startsWith('audio/m')
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-sounds-'))
  const path = join(directory.path, `a.${extension}`)
  await run('ffmpeg', [
    ...['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=160x96:r=25', '-f', 'lavfi', '-i', 'sine', '-t', '1'],
    ...[...options, path],
  ])
  const bytes = await readFile(path)
  expect(await sniff(bytes)).toMatchObject({ mime })
  // The rest of a frame before the second one is missing.
  if (isSound)
    expect(await sniff(Buffer.concat([bytes.subarray(0, 50), bytes.subarray(60)]))).toMatchObject({ mime })
})

test('U7 a compressed file has its type', async () => {
  expect(await sniff(gzipSync('text'))).toMatchObject({ mime: 'application/gzip' })
  expect(await sniff(gzipSync(Buffer.alloc(100_000)))).toMatchObject({ mime: 'application/gzip' })
})
