import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import sharp from 'sharp'
import { temporaryDirectory } from '../harness/directory.ts'
import { startServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'

// npm run test:corpus -- DIRECTORY: stores each picture and video of a directory in a bucket that removes metadata, and compares what
// the service returns with the file, by decoders that are not part of the service. A line for each file that fails, and a table.

const run = promisify(execFile)

// libvips recognizes a file by its path, which is that of another one before.
sharp.cache(false)

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { concurrency: { type: 'string', default: '2' } },
})
const [directory] = positionals
if (directory === undefined) throw new Error('Name a directory of pictures and videos.')

/** Tags that tell about people, places and devices; colour profiles and file attributes are not of interest. */
const isPrivate = (tag: string) =>
  /^(?!File:|ICC_Profile:|Composite:|ExifTool:).*(GPS|Latitude|Longitude|Location(?!Flag)|Serial|Owner|Artist|Author|By-line|:Make$|:Model$|DateTimeOriginal|UserComment|MakerNote)/i.test(
    tag,
  )

interface Result {
  readonly outcome: string
  readonly failures: readonly string[]
}

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** What a decoder shows: pixels of all pages upright, or the packets of all streams; null if the decoder refuses the file. */
async function shown(path: string, isVideo: boolean): Promise<string | null> {
  try {
    if (isVideo) {
      const map = ['-map', '0:V?', '-map', '0:a?']
      const { stdout } = await run(
        'ffmpeg',
        ['-v', 'quiet', '-i', path, ...map, '-c', 'copy', '-f', 'framehash', '-'],
        {
          maxBuffer: 2 ** 28,
          timeout: 60_000,
        },
      )
      // Comment lines name the program and the tracks.
      return digest(Buffer.from(stdout.replaceAll(/^#.*\n/gm, '')))
    }
    const { data, info } = await sharp(path, { failOn: 'none', pages: -1, limitInputPixels: 1e8 })
      .autoOrient()
      .raw()
      .toBuffer({ resolveWithObject: true })
    return `${info.width}x${info.height}x${info.channels}:${digest(data)}`
  } catch {
    return null
  }
}

/** The pixels of a HEIC or AVIF file by libheif, which applies its transformations. */
async function shownByLibheif(path: string, scratch: string): Promise<string | null> {
  try {
    const target = join(scratch, 'shown.png')
    await run('heif-convert', [path, target], { timeout: 60_000 })
    const { data, info } = await sharp(target, { limitInputPixels: 1e8 })
      .raw()
      .toBuffer({ resolveWithObject: true })
    return `${info.width}x${info.height}:${digest(data)}`
  } catch {
    return null
  }
}

/** Whether a strict decoder accepts the first page; the service shows no damaged picture. */
const isSound = (path: string) =>
  sharp(path, { failOn: 'warning', limitInputPixels: 1e8 })
    .stats()
    .then(() => true)
    .catch(() => false)

async function privateTags(path: string): Promise<string[]> {
  const { stdout } = await run('exiftool', ['-j', '-G', '-a', '-ee', path], { maxBuffer: 2 ** 26 }).catch(
    (error: { stdout?: string }) => ({ stdout: error.stdout || '[{}]' }),
  )
  const [tags = {}]: Record<string, unknown>[] = JSON.parse(stdout)
  return Object.keys(tags).filter(isPrivate)
}

const removable =
  /^(image\/(jpeg|png|webp|avif|heic|heif|tiff)|video\/(mp4|quicktime|3gpp2?|x-m4v)|audio\/(mp4|x-m4a))/
/** Names of raw files of cameras, which are stored with their metadata whatever their type. */
const raw = /\.(nef|cr2|dng|arw|orf|rw2)$/i
const renderable = /^image\/(jpeg|png|webp|avif|tiff|gif)/

await using server = await startServer({ MEDIABUCKET_VARIANT_TIMEOUT: '20s' })
await server.command('bucket', 'create', 'corpus', '--remove-metadata', 'on')
const { authorization } = await makeToken(server, '--bucket', 'corpus')

async function check(path: string, scratch: string): Promise<Result> {
  const bytes = await readFile(path)
  const response = await fetch(`${server.url}/api/media`, {
    method: 'POST',
    headers: {
      authorization,
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(basename(path))}`,
    },
    body: bytes,
  })
  const body: { detail?: string; content_type: string; sha256: string; url: string } = JSON.parse(
    await response.text(),
  )
  if (response.status === 422) return { outcome: '422', failures: [] }
  if (response.status !== 201)
    return { outcome: `${response.status}`, failures: [`status ${response.status}: ${body.detail}`] }
  const failures: string[] = []
  const type: string = body.content_type
  const stored = Buffer.from(await (await fetch(body.url)).arrayBuffer())
  if (digest(stored) !== body.sha256) failures.push('the bytes do not have their SHA-256')
  if (!removable.test(type) || raw.test(path)) {
    if (!stored.equals(bytes)) failures.push(`${type} was changed`)
    // A decoder of a removable type must not accept a file that was stored as another type and keeps metadata.
    const kept = (await privateTags(path)).filter((tag) =>
      /^(EXIF|XMP|IPTC|QuickTime|MakerNotes):.*GPS/.test(tag),
    )
    if (kept.length > 0 && !/^image\/(gif|x-|vnd)|svg/.test(type))
      failures.push(`${type} keeps ${kept.join(' ')}`)
    return { outcome: `stored as sent`, failures }
  }
  const target = join(scratch, `stored${extname(path)}`)
  await writeFile(target, stored)
  const isVideo = /^(video|audio)/.test(type)
  const before = await shown(path, isVideo)
  const after = await shown(target, isVideo)
  if (before !== after) failures.push(`${type} shows something else: ${before} → ${after}`)
  if (/hei[cf]|avif/.test(type)) {
    const [first, second] = [await shownByLibheif(path, scratch), await shownByLibheif(target, scratch)]
    if (first !== second) failures.push(`${type} shows something else in libheif: ${first} → ${second}`)
  }
  const left = await privateTags(target)
  if (left.length > 0) failures.push(`keeps ${left.join(' ')}`)
  const thumbnail = await fetch(`${body.url}?variant=thumb`)
  await thumbnail.arrayBuffer()
  if (thumbnail.status >= 500) failures.push(`thumbnail ${thumbnail.status}`)
  if (thumbnail.status === 404 && renderable.test(type) && (await isSound(target)))
    failures.push('no thumbnail')
  return { outcome: stored.equals(bytes) ? 'nothing to remove' : 'metadata removed', failures }
}

const names = (await readdir(directory)).toSorted()
const outcomes = new Map<string, number>()
let failed = 0
let done = 0
async function work(): Promise<void> {
  await using scratch = await temporaryDirectory()
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    const { outcome, failures } = await check(join(directory ?? '', name), scratch.path).catch((error) => ({
      outcome: 'error',
      failures: [`${error}`],
    }))
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    for (const failure of failures) console.log(`${name}: ${failure}`)
    if (failures.length > 0) failed++
    if (++done % 100 === 0) console.error(`${done} files`)
  }
}
await Promise.all(Array.from({ length: Number(values.concurrency) }, work))
for (const [outcome, count] of outcomes) console.log(`${outcome.padEnd(20)}${`${count}`.padStart(6)}`)
console.log(`${'failed'.padEnd(20)}${`${failed}`.padStart(6)}`)
if (failed > 0) process.exitCode = 1
