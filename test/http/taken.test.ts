import { execFile } from 'node:child_process'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { beforeAll, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { databaseSettings } from '../harness/database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { film, heicOf } from '../harness/films.ts'
import { noise } from '../harness/pictures.ts'
import { onServer } from '../harness/postgres.ts'
import { expectProblem } from '../harness/problem.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { needTools } from '../harness/tools.ts'
import { itemOf, tusOf } from '../harness/tus.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readItems } from '../harness/wire.ts'

const run = promisify(execFile)

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

async function newBucket(...options: readonly string[]) {
  const name = uniqueName('taken')
  const { authorization } = await makeToken(server, '--bucket', name)
  if (options.length > 0) await runHere(server.data, 'bucket set', name, ...options)
  const request = (path: string, init: RequestInit = {}) =>
    server.request(path, { ...init, headers: { authorization, ...init.headers } })
  return {
    authorization,
    request,
    upload: async (bytes: Uint8Array<ArrayBuffer>, filename: string) =>
      readItem(
        await request('/api/media', {
          method: 'POST',
          body: bytes,
          headers: { 'content-disposition': `attachment; filename="${filename}"` },
        }),
      ),
  }
}

/** The file with tags that exiftool writes. */
async function tagged(name: string, bytes: Buffer, ...tags: readonly string[]) {
  needTools('exiftool')
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-taken-'))
  const path = join(directory.path, name)
  await writeFile(path, bytes)
  await run('exiftool', ['-q', '-overwrite_original', ...tags, path])
  return new Uint8Array(await readFile(path))
}

const exif = { IFD2: { DateTimeOriginal: '2018:07:19 18:02:11', OffsetTimeOriginal: '+02:00' } }
const local = '2018-07-19T18:02:11.000'
const red = sharp({ create: { width: 64, height: 48, channels: 3, background: 'red' } })
const largeNoise = () => noise(900).withExif(exif)
const quickTime = '-Keys:CreationDate=2018:07:19 18:02:11+02:00'

const datedFilm = (extension: string) =>
  film(extension, '64x48', ['-metadata', 'creation_time=2018-07-19T16:02:11Z'])

/** The film in a file that is not stored in the catalog, with its header at the end. Its frames cannot be found any more. */
function enlarged(bytes: Uint8Array): Buffer {
  const start = Buffer.from(bytes)
  const [first, space] = [start.readUInt32BE(0), Buffer.alloc(500_000)]
  space.writeUInt32BE(space.length)
  space.write('free', 4)
  return Buffer.concat([start.subarray(0, first), space, start.subarray(first)])
}

test.each([
  ['photo.jpg', () => red.clone().withExif(exif).jpeg().toBuffer(), `${local}+02:00`],
  ['photo.png', () => red.clone().withExif(exif).png().toBuffer(), `${local}+02:00`],
  ['photo.webp', () => red.clone().withExif(exif).webp().toBuffer(), `${local}+02:00`],
  ['photo.avif', () => red.clone().withExif(exif).avif({ effort: 0 }).toBuffer(), `${local}+02:00`],
  [
    'photo.tiff',
    async () =>
      tagged('a.tiff', await red.clone().tiff().toBuffer(), '-DateTimeOriginal=2018:07:19 18:02:11'),
    local,
  ],
  ['large.jpg', () => largeNoise().jpeg({ quality: 95 }).toBuffer(), `${local}+02:00`],
  ['large.webp', () => largeNoise().webp({ quality: 95 }).toBuffer(), `${local}+02:00`],
  [
    'phone.heic',
    async () =>
      tagged(
        'a.heic',
        await heicOf(await red.clone().png().toBuffer()),
        '-DateTimeOriginal=2018:07:19 18:02:11',
        '-SubSecTimeOriginal=5',
      ),
    '2018-07-19T18:02:11.500',
  ],
  [
    'edited.jpg',
    async () =>
      tagged(
        'a.jpg',
        await red.clone().jpeg().toBuffer(),
        '-XMP-exif:DateTimeOriginal=2018:07:19 18:02:11+02:00',
      ),
    `${local}+02:00`,
  ],
  [
    'edited.png',
    async () =>
      tagged('a.png', await red.clone().png().toBuffer(), '-XMP-photoshop:DateCreated=2018:07:19 18:02:11'),
    local,
  ],
  ['film.mp4', async () => enlarged(await datedFilm('mp4')), '2018-07-19T16:02:11.000Z'],
  ['phone.mov', async () => tagged('a.mov', await datedFilm('mov'), quickTime), `${local}+02:00`],
  ['none.jpg', () => red.clone().jpeg().toBuffer(), null],
  [
    'large.mov',
    async () => enlarged(await tagged('a.mov', await datedFilm('mov'), quickTime)),
    `${local}+02:00`,
  ],
  ['none.mp4', () => film('mp4'), null],
] as const)('M9 the time at which %s was taken is in the media object', async (name, make, expected) => {
  const { upload, request } = await newBucket()
  const item = await upload(new Uint8Array(await make()), name)
  expect(item.taken_at).toBe(expected)
  const listed = await request(`/api/media/${item.id}`)
  expect((await readItem(listed)).taken_at).toBe(expected)
})

test('M9, U1, R1 the time is read from small and large files that arrive raw, in a form and in chunks', async () => {
  const { authorization, upload: uploadRaw, request } = await newBucket()
  const small = new Uint8Array(await red.clone().withExif(exif).png().toBuffer())
  // Larger than what is stored in the catalog; a large WebP picture has its time at the end.
  const large = new Uint8Array(await largeNoise().webp({ quality: 95 }).toBuffer())
  expect([small.length < 65_536, large.length > 262_144]).toEqual([true, true])
  const tus = tusOf(server, authorization)
  for (const bytes of [small, large]) {
    const path = await tus.createWithLength(bytes.length)
    const middle = Math.ceil(bytes.length / 2)
    await tus.sendChunk(path, 0, bytes.subarray(0, middle))
    const sent = await tus.sendChunk(path, middle, bytes.subarray(middle))
    expect(await itemOf({ request }, sent)).toMatchObject({ taken_at: `${local}+02:00` })
    for (const send of [uploadRaw, inForm])
      expect(await send(bytes, 'a.png')).toMatchObject({ taken_at: `${local}+02:00` })
  }

  function inForm(bytes: Uint8Array<ArrayBuffer>, name: string) {
    return upload(server, bytes, { name, type: 'image/png', authorization })
  }
})

test('X7 a bucket that removes metadata has no time, unless it keeps that', async () => {
  const photo = new Uint8Array(await red.clone().withExif(exif).jpeg().toBuffer())
  for (const [setting, expected] of [
    ['on', null],
    ['except-taken', `${local}+02:00`],
  ] as const) {
    const { upload, request } = await newBucket('--remove-metadata', setting)
    const item = await upload(photo, 'a.jpg')
    expect(item.taken_at).toBe(expected)
    const bytes = Buffer.from(await (await fetch(item.url)).arrayBuffer())
    expect(bytes.includes('2018:07:19')).toBe(false)
    const bucket = await (await request('/api/bucket')).json()
    expect(bucket).toMatchObject({ remove_metadata: true, keep_taken_at: expected !== null })
  }
})

test.each([
  [
    'XMP of a TIFF file',
    async () =>
      tagged('a.tiff', await red.clone().tiff().toBuffer(), '-XMP-xmp:CreateDate=2018:07:19 18:02:11'),
    local,
  ],
  [
    'keys that ffmpeg copies to an MP4 file',
    () =>
      film('mp4', '64x48', [
        ...['-metadata', 'com.apple.quicktime.creationdate=2018-07-19T18:02:11+0200'],
        ...['-movflags', 'use_metadata_tags'],
      ]),
    `${local}+02:00`,
  ],
  [
    'a QuickTime file whose first box is unknown',
    async () => {
      const sent = await tagged('a.mov', await datedFilm('mov'), quickTime)
      sent.set(Buffer.from('junk'), 4)
      return sent
    },
    `${local}+02:00`,
  ],
] as const)('X7 the time in %s is kept when its metadata is removed', async (_, make, expected) => {
  const { upload } = await newBucket('--remove-metadata', 'except-taken')
  const item = await upload(new Uint8Array(await make()), 'a')
  expect(item.taken_at).toBe(expected)
  const stored = Buffer.from(await (await fetch(item.url)).arrayBuffer())
  expect(stored.includes('2018-07-19')).toBe(false)
})

test('X7 a file is refused if its time cannot be read and would be lost', async () => {
  const sent = new Uint8Array(await red.clone().withExif(exif).jpeg().toBuffer())
  // The position of the first directory, in the first block of Exif.
  sent.set([0xff, 0xff], Buffer.from(sent).indexOf('Exif') + 10)
  const { request } = await newBucket('--remove-metadata', 'except-taken')
  const response = await request('/api/media', { method: 'POST', body: sent })
  const { detail } = await expectProblem(response, 422, 'file-unreadable')
  expect(detail).toMatch(/time .* cannot be read/)
  expect(await (await request('/api/bucket')).json()).toMatchObject({ items: 0 })
  for (const setting of ['on', 'off']) {
    const { upload } = await newBucket('--remove-metadata', setting)
    expect((await upload(sent, 'a.jpg')).taken_at).toBeNull()
  }
})

test('K19, K20 lists are in the order of the times of cameras, with other items at their upload, or of names, and continue after a cursor', async () => {
  const { upload, request } = await newBucket()
  const at = async (time: string, offset?: string) =>
    new Uint8Array(
      await red
        .clone()
        .withExif({ IFD2: { DateTimeOriginal: time, ...(offset && { OffsetTimeOriginal: offset }) } })
        .jpeg()
        .toBuffer(),
    )
  // In UTC, the first one is after the second one.
  await upload(await at('2024:05:01 10:00:00', '-08:00'), 'second.jpg')
  await upload(await at('2024:05:01 11:00:00', '+02:00'), 'third.jpg')
  await upload(new Uint8Array(Buffer.from('text')), 'last.txt')
  await upload(await at('2018:05:01 10:00:00'), 'first.jpg')
  const names = async (query: string): Promise<(string | null)[]> => {
    const response = await request(`/api/items?${query}`)
    expect(response.status).toBe(200)
    const { data, next_cursor } = await readItems(response)
    const rest =
      next_cursor === null ? [] : await names(`${query.replace(/&after=.*/, '')}&after=${next_cursor}`)
    return [...data.map(({ filename }) => filename), ...rest]
  }
  const expected = ['first.jpg', 'second.jpg', 'third.jpg', 'last.txt']
  for (const limit of [1, 3, 100]) {
    expect(await names(`order=taken&limit=${limit}`)).toEqual(expected)
    expect(await names(`order=taken-desc&limit=${limit}`)).toEqual(expected.toReversed())
  }
  expect(await names('order=taken&kind=image&limit=2')).toEqual(expected.slice(0, 3))
  expect(await names('order=taken-desc&name=jpg&limit=2')).toEqual(expected.slice(0, 3).toReversed())
  expect(await names('order=taken&from=2024-01-01T00:00:00Z&to=2024-05-01T10:00:01Z')).toEqual(['second.jpg'])
  expect(await names('order=name&limit=2')).toEqual(['first.jpg', 'last.txt', 'second.jpg', 'third.jpg'])
  expect(await names('order=name-desc&kind=image&limit=1')).toEqual(['third.jpg', 'second.jpg', 'first.jpg'])
  expect(await names('order=name&start_name=LAST.TXT&limit=1')).toEqual([
    'last.txt',
    'second.jpg',
    'third.jpg',
  ])
  expect(await names('order=name-desc&start_name=second.jpg&limit=1')).toEqual([
    'second.jpg',
    'last.txt',
    'first.jpg',
  ])
  await expectProblem(await request('/api/items?start_name=a'), 400, 'parameter-malformed')
  const other = await readItems(await request('/api/items?order=taken&limit=1'))
  const refused = await request(`/api/items?order=oldest&limit=1&after=${other.next_cursor}`)
  await expectProblem(refused, 400, 'cursor-malformed')
})

test('M10 times that a catalog lacks are read from the bytes while the service runs, are in the feed, and order the lists', async () => {
  await using scratch = await temporaryDirectory()
  const data = join(scratch.path, 'data')
  const first = await startServer({}, data)
  const authorization = `Bearer ${first.token}`
  const headers = { authorization }
  try {
    const send = (name: string, bytes: Uint8Array<ArrayBuffer>) =>
      upload(first, bytes, { name, type: '', authorization })
    await send('later.txt', new Uint8Array(Buffer.from('text')))
    await send('2018.jpg', new Uint8Array(await red.clone().withExif(exif).jpeg().toBuffer()))
    await send('plain.png', new Uint8Array(await red.clone().png().toBuffer()))
    // Above the limit of files in the catalog.
    await send('large.jpg', new Uint8Array(await noise(300).withExif(exif).jpeg().toBuffer()))
  } finally {
    await first.stop()
  }
  await clearTimes(data)

  await using server = await startServer({}, data)
  const list = async (query: string) =>
    (await readItems(await server.request(`/api/items?${query}`, { headers }))).data
  await until(
    'the times',
    async () => (await list('kind=image')).filter(({ taken_at }) => taken_at).length === 2,
  )
  const found = await list('order=taken')
  expect(found.map(({ filename, taken_at }) => [filename, taken_at])).toEqual([
    ['2018.jpg', `${local}+02:00`],
    ['large.jpg', `${local}+02:00`],
    ['later.txt', null],
    ['plain.png', null],
  ])
  const feed = await (await server.request('/api/changes', { headers })).json()
  const edited = found.slice(0, 2).map(({ id }) => ({ type: 'edited', item_id: id }))
  expect(feed).toMatchObject({ data: [{}, {}, {}, {}, ...edited] })
})

/** Removes the times from the rows of a service that does not run, as if an earlier version had written them. */
async function clearTimes(data: string): Promise<void> {
  const sql = 'UPDATE items SET taken_at = NULL, taken_offset = NULL, taken_read = NULL'
  const { MEDIABUCKET_DATABASE_URL: url } = await databaseSettings(data)
  if (url !== undefined) return onServer(url, sql)
  const db = new DatabaseSync(join(data, 'catalog.db'))
  db.exec(sql)
  db.close()
}
