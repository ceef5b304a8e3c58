import { execFile } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { createMemorySource, readTakenTime, type TakenReading } from '@mediabucket/strip-metadata'
import sharp from 'sharp'
import { beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../../../test/harness/random.ts'
import { needTools } from '../../../test/harness/tools.ts'
import {
  type Blocks,
  exifBlock,
  movieOf,
  type PictureFormat,
  pictureOf,
  type XmpName,
  xmpPacket,
} from './dated-files.ts'

const run = promisify(execFile)
const now = Date.UTC(2026, 10, 26)
const files = 400

beforeAll(() => needTools('exiftool'))

type Choose = (limit: number) => number

const pick = <T>(choose: Choose, values: readonly T[]): T => values[choose(values.length)] as T
const two = (value: number) => `${value}`.padStart(2, '0')

/** A time of a clock, with a separator of its date. */
function clockText(choose: Choose, separator: string, between: string): string {
  const date = [1990 + choose(35), two(1 + choose(12)), two(1 + choose(28))].join(separator)
  return `${date}${between}${[choose(24), choose(60), choose(60)].map(two).join(':')}`
}

const zones = ['Z', '+02:00', '-03:30', '+05:45', '']

const exifTime = (choose: Choose) =>
  pick(choose, [
    ...Array.from({ length: 5 }, () => clockText(choose, ':', ' ')),
    ...['0000:00:00 00:00:00', '    :  :     :  :  ', '', '2012:05:29 24:12:54', '2045:01:01 00:00:00'],
    ...['1970:01:01 00:00:00', '2023:02:29 10:00:00'],
  ])

const xmpTime = (choose: Choose) =>
  pick(choose, [
    ...Array.from(
      { length: 4 },
      () => `${clockText(choose, '-', 'T')}${pick(choose, ['', '.25'])}${pick(choose, zones)}`,
    ),
    ...['2012', '2012-05', '2012-05-29', '2012-05-29T08:55', '2012-05-29T08:55+02:00', '1812-01-01T00:00:00'],
  ])

const exifTexts = (choose: Choose): Record<number, string> => ({
  ...(choose(3) > 0 && { 36867: exifTime(choose) }),
  ...(choose(3) > 0 && { 36868: exifTime(choose) }),
  ...(choose(3) === 0 && { 37521: `${choose(1_000)}` }),
  ...(choose(3) === 0 && { 36881: pick(choose, zones) }),
  ...(choose(3) === 0 && { 36882: pick(choose, zones) }),
})

function xmpBlock(choose: Choose): Buffer {
  const names: XmpName[] = ['exif:DateTimeOriginal', 'photoshop:DateCreated', 'xmp:CreateDate']
  const properties = names.filter(() => choose(3) > 0).map((name) => [name, xmpTime(choose)])
  return xmpPacket(Object.fromEntries(properties), choose)
}

/** The block with a random fault, or without one. */
function maybeDamaged(
  choose: Choose,
  block: Buffer | null,
): { readonly block: Buffer | null; readonly isDamaged: boolean } {
  if (block === null || choose(4) > 0) return { block, isDamaged: false }
  if (choose(2) === 0) return { block: block.subarray(0, choose(block.length)), isDamaged: true }
  const damaged = Buffer.from(block)
  damaged.writeUInt8(choose(256), choose(damaged.length))
  return { block: damaged, isDamaged: true }
}

interface Sample {
  readonly name: string
  readonly bytes: Buffer
  readonly isDamaged: boolean
}

async function samplesOf(choose: Choose): Promise<Sample[]> {
  const plain = sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } })
  const bases: Record<PictureFormat, Buffer> = {
    jpg: await plain.clone().jpeg().toBuffer(),
    png: await plain.clone().png().toBuffer(),
    webp: await plain.clone().webp().toBuffer(),
    ...{ tif: Buffer.from('II*\0\0\0\0\0'), heic: Buffer.alloc(0), avif: Buffer.alloc(0) },
  }
  return Array.from({ length: files }, (_, index) => {
    const format = pick(choose, ['jpg', 'png', 'webp', 'tif', 'heic', 'avif', 'mp4', 'mov'] as const)
    const isTiff = format === 'tif'
    const texts = exifTexts(choose)
    const isInFirst = choose(4) === 0
    const exif = maybeDamaged(
      choose,
      isTiff || choose(3) > 0
        ? exifBlock({
            isLittle: choose(2) === 0,
            exif: isInFirst ? {} : texts,
            first: { 271: 'camera', ...(isInFirst && texts) },
            xmp: isTiff && choose(2) === 0 ? xmpBlock(choose) : null,
          })
        : null,
    )
    const xmp = maybeDamaged(choose, choose(2) === 0 ? xmpBlock(choose) : null)
    const blocks: Blocks = {
      exif: exif.block,
      xmp: xmp.block,
      isXmpFirst: choose(2) === 0,
      choice: choose(60),
    }
    const seconds = pick(choose, [0, 5, 2_082_844_800, 3_000_000_000 + choose(800_000_000)])
    const created = pick(choose, [
      null,
      `${clockText(choose, '-', 'T')}${pick(choose, ['+0200', '-08:00', 'Z', ''])}`,
    ])
    const isMovie = format === 'mp4' || format === 'mov'
    const bytes = isMovie
      ? movieOf(format === 'mov' ? 'qt  ' : 'isom', { seconds, created }, blocks)
      : pictureOf(format, bases[format], blocks)
    return { name: `${index}.${format}`, bytes, isDamaged: (exif.isDamaged && !isMovie) || xmp.isDamaged }
  })
}

type Tags = Readonly<Record<string, string | number>>

/** What exiftool reads, by the names of the files. */
async function tagsOf(samples: readonly Sample[]): Promise<Map<string, Tags>> {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-dated-'))
  for (const { name, bytes } of samples) await writeFile(join(directory.path, name), bytes)
  const tags = ['-Exif:all', '-XMP:all', '-QuickTime:all', '-Keys:all']
  const { stdout } = await run('exiftool', ['-json', '-G1', '-m', ...tags, directory.path], {
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: { stdout: string }) => error)
  const found: (Tags & { readonly SourceFile: string })[] = JSON.parse(stdout)
  return new Map(found.map((each) => [basename(each.SourceFile), each]))
}

/** A time that exiftool shows, by the rules of M9. */
function timeOf(value: string | number | undefined): { time: number; zone: string } | null {
  const parts =
    /^(\d{4})(?::(\d\d)(?::(\d\d)(?: (\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?)?)?(Z|[+-]\d\d:\d\d)?$/.exec(
      `${value}`,
    )
  if (!parts) return null
  const [year = '', month = '01', day = '01', hour = '00', minute = '00', second = '00', fraction = '0'] =
    parts.slice(1)
  const clock = `${year}-${month}-${day}T${hour === '24' ? '00' : hour}:${minute}:${second}`
  const time = Date.parse(`${clock}Z`)
  if (Number.isNaN(time) || !new Date(time).toISOString().startsWith(clock)) return null
  const isNone = time < Date.UTC(1826, 0, 1) || time > now + 86_400_000 || time === 0
  return isNone ? null : { time: time + Number(`0.${fraction}`) * 1000, zone: parts[8] ?? '' }
}

const minutesOf = (zone: string): number | null => {
  if (zone === 'Z') return 0
  const [, sign, hours, minutes] = /^([+-])(\d\d):(\d\d)$/.exec(zone) ?? []
  return sign ? (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) : null
}

/** The time of the file by what exiftool reads, in the order of M9. */
function expectedOf(tags: Tags): TakenReading['taken'] {
  const exif = (name: string) => tags[`ExifIFD:${name}`] ?? tags[`IFD0:${name}`]
  const created = { time: timeOf(exif('CreateDate')), text: exif('CreateDate') }
  const original = { time: timeOf(exif('DateTimeOriginal')), text: exif('DateTimeOriginal') }
  const offsets = [minutesOf(`${exif('OffsetTimeOriginal')}`), minutesOf(`${exif('OffsetTimeDigitized')}`)]
  const fraction = Number(`0.${exif('SubSecTimeOriginal') ?? 0}`) * 1000
  const isPair = original.text === created.text
  // exiftool shows the numbers of clocks that were not set as times of 1970.
  const seconds = timeOf(tags['QuickTime:CreateDate'])
  const header = seconds && seconds.time > 86_400_000 ? seconds : null
  const keys = timeOf(tags['Keys:CreationDate'])
  const [xmpOriginal, photoshop, xmpCreated] = [
    'XMP-exif:DateTimeOriginal',
    'XMP-photoshop:DateCreated',
    'XMP-xmp:CreateDate',
  ].map((name) => timeOf(tags[name]))
  const withZone = (found: { time: number; zone: string }) => ({
    time: found.time,
    offset: minutesOf(found.zone),
  })
  if (original.time) {
    const isAlone = created.text === undefined || created.text === ''
    const offset = offsets[0] ?? (isPair || isAlone ? offsets[1] : null) ?? null
    return { time: original.time.time + Math.floor(fraction), offset }
  }
  if (keys) return withZone(keys)
  if (xmpOriginal) return withZone(xmpOriginal)
  if (photoshop) return withZone(photoshop)
  if (created.time) {
    const isAlone = original.text === undefined || original.text === ''
    return { time: created.time.time, offset: offsets[1] ?? (isPair || isAlone ? offsets[0] : null) ?? null }
  }
  if (xmpCreated) return withZone(xmpCreated)
  return header && { time: header.time, offset: 0 }
}

test('M9, X7 the time is the one that exiftool reads from any place, and a damaged block hides neither another one nor that it is damaged', async () => {
  const samples = await samplesOf(seededRandom())
  const all = await tagsOf(samples)
  const wrong: unknown[] = []
  let [found, hidden] = [0, 0]
  for (const { name, bytes, isDamaged } of samples) {
    const expected = expectedOf(all.get(name) ?? {})
    const { taken, fault } = await readTakenTime(createMemorySource(bytes), now, formatOf(name))
    const quick = await readTakenTime(createMemorySource(bytes), now)
    if (taken !== null) found += 1
    if (taken === null && fault !== null) hidden += 1
    // exiftool repairs some damage. What it finds there is found too, or the service knows that something may be there.
    const isSame = JSON.stringify(taken) === JSON.stringify(expected)
    const isKnown = isDamaged && (expected === null || taken !== null || fault !== null)
    if (!(isSame || isKnown) || (fault !== null && !isDamaged) || quick.taken?.time !== taken?.time)
      wrong.push({ name, expected, taken, fault, quick, tags: all.get(name) })
  }
  expect(wrong).toEqual([])
  expect(found).toBeGreaterThan(files / 2)
  expect(hidden).toBeGreaterThan(0)
})

function formatOf(name: string) {
  const extension = name.slice(name.indexOf('.') + 1)
  const pictures = { jpg: 'jpeg', png: 'png', webp: 'webp', tif: 'tiff' } as const
  return extension in pictures ? pictures[extension as keyof typeof pictures] : 'boxes'
}
