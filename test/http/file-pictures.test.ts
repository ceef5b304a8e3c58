import { mkdir, mkdtempDisposable, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import sharp from 'sharp'
import { rgbaToThumbHash, thumbHashToAverageRGBA } from 'thumbhash'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { film, heicOf, pdf } from '../harness/films.ts'
import { phonePicture } from '../harness/phone-pictures.ts'
import { cornersOf, noise, quarters, storedVariants, variantUrl } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readItems } from '../harness/wire.ts'

/** A drawing whose lower right quarter is transparent. */
const hole =
  '<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><path d="M0 0h64v32h-32v32h-32z" fill="red"/></svg>'

let server: TestServer
/** Files that no tool may read name this address. */
const trap = createServer((socket) => {
  trapped += 1
  socket.destroy()
})
let trapped = 0
let trapUrl = ''
beforeAll(async () => {
  server = await startServer()
  await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve))
  const address = trap.address()
  trapUrl = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/secret.mp4`
})
afterAll(async () => {
  trap.close()
  await server[Symbol.asyncDispose]()
})

const store = (bytes: Buffer, name: string, type: string) =>
  upload(server, new Uint8Array(bytes), { name, type })

const describeItem = async (id: string) => readItem(await server.request(`/api/media/${id}`))

/** The thumbnail, and the item with what its render has found. */
async function picture(id: string, variant = 'thumb') {
  const response = await fetch(variantUrl(server, id, variant))
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/webp'])
  const bytes = new Uint8Array(await response.arrayBuffer())
  const item = await until('it is recorded', async () => {
    const found = await describeItem(id)
    return found.thumbhash === null ? null : found
  })
  const { width, height } = await sharp(bytes).metadata()
  return { bytes, item, size: [width, height] }
}

const refused = async (id: string) =>
  expectProblem(await fetch(variantUrl(server, id)), 404, 'variant-unavailable')

describe('videos', () => {
  test.each([
    ['mp4', 'video/mp4', []],
    ['mov', 'video/quicktime', []],
    ['webm', 'video/webm', ['-c:v', 'libvpx', '-deadline', 'realtime']],
    ['mkv', 'video/matroska', []],
    ['avi', 'video/vnd.avi', []],
    ['ts', 'video/mp2t', []],
  ])(
    'V14 the variant of a video (%s) is a frame after its start, and its duration and size are recorded',
    async (extension, type, options) => {
      const stored = await store(await film(extension, '320x180', options), `film.${extension}`, type)
      expect(stored).toMatchObject({ content_type: type, width: null, duration: null, thumbhash: null })
      const { bytes, item, size } = await picture(stored.id)
      expect(size).toEqual([320, 180])
      expect(await cornersOf(bytes)).toEqual(Array(4).fill('red'))
      expect(item).toMatchObject({ width: 320, height: 180, variants: { thumb: expect.any(String) } })
      expect(Math.abs((item.duration ?? 0) - 5)).toBeLessThan(0.2)
      const { r, g } = thumbHashToAverageRGBA(Buffer.from(item.thumbhash ?? '', 'base64'))
      expect(r - g).toBeGreaterThan(0.7)
    },
  )

  test('V14 a large video on the disk, with pixels that are not square, is shown as a player shows it', async () => {
    const bytes = await film('mp4', '320x180', ['-crf', '10'], 'noise=alls=60:allf=t,setsar=2')
    expect(bytes.length).toBeGreaterThan(65_536)
    const { id } = await store(bytes, 'film.mp4', 'video/mp4')
    expect(await picture(id, 'medium')).toMatchObject({ size: [640, 180], item: { width: 640, height: 180 } })
  })

  test.each([
    { stated: 'bt709', used: 'bt709', size: '320x180' },
    { stated: 'bt2020nc', used: 'bt2020', size: '320x180' },
    { stated: 'smpte170m', used: 'bt601', size: '1280x720' },
    { stated: 'unknown', used: 'bt709', size: '1280x720' },
    { stated: 'unknown', used: 'bt601', size: '1280x718' },
  ])('V2 the picture of a video of $size has its colours: matrix $stated', async ({ stated, used, size }) => {
    const bytes = await film(
      'mp4',
      size,
      ['-c:v', 'libx264', '-colorspace', stated],
      `format=gbrp,scale=out_color_matrix=${used},format=yuv420p`,
    )
    const { id } = await store(bytes, 'film.mp4', 'video/mp4')
    const { dominant, channels } = await sharp((await picture(id)).bytes).stats()
    expect(dominant.r).toBeGreaterThan(240)
    expect(channels.map(({ mean }) => Math.abs(mean - (mean > 100 ? 254 : 0)) < 4)).toEqual([
      true,
      true,
      true,
    ])
  })

  test.each([
    ['webm', 'video/webm', ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-pix_fmt', 'yuva420p']],
    ['webm', 'video/webm', ['-c:v', 'libvpx', '-auto-alt-ref', '0', '-pix_fmt', 'yuva420p']],
    ['mov', 'video/quicktime', ['-c:v', 'qtrle', '-pix_fmt', 'argb']],
  ])('V2 transparent parts of a video (%s, %s, %s) stay transparent', async (extension, type, options) => {
    const { id } = await store(
      await film(extension, '64x48', options, 'format=rgba,colorchannelmixer=aa=0'),
      `a.${extension}`,
      type,
    )
    expect(await cornersOf((await picture(id)).bytes)).toEqual(Array(4).fill('nothing'))
  })

  test('V14 a video of one frame has a picture', async () => {
    const { id } = await store(await film('mp4', '64x48', ['-frames:v', '1']), 'a.mp4', 'video/mp4')
    expect((await picture(id)).size).toEqual([64, 48])
  })

  test('V3, V6 a truncated video has no variant, and the service continues', async () => {
    const whole = await film('mp4')
    const { id, url } = await store(whole.subarray(0, whole.length / 3), 'a.mp4', 'video/mp4')
    await refused(id)
    expect((await fetch(url)).status).toBe(200)
  })

  test('K7 after a start with a program that was missing, a list with new variants has another ETag', async () => {
    const settings = { MEDIABUCKET_BASE_URL: 'https://media.example.org' }
    await using first = await startServer({ ...settings, PATH: '/nonexistent' })
    await upload(first, new Uint8Array(await film('mp4')), { name: 'film.mp4', type: 'video/mp4' })
    const headers = { authorization: `Bearer ${first.token}` }
    const before = await first.request('/api/items', { headers })
    expect((await readItems(before)).data).toMatchObject([{ variants: null }])
    await first.stop()
    await using second = await startServer(settings, first.data)
    const after = await second.request('/api/items', {
      headers: { ...headers, 'if-none-match': before.headers.get('etag') ?? '' },
    })
    expect(after.status).toBe(200)
    expect((await readItems(after)).data).toMatchObject([{ variants: { thumb: expect.any(String) } }])
  })

  test('V15 playlists and scripts that name other files or servers are not followed, whatever their name and type', async () => {
    const lists = [
      `#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:10.0,\n${trapUrl}\n#EXT-X-ENDLIST\n`,
      '#EXTM3U\n#EXTINF:10.0,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n',
      `ffconcat version 1.0\nfile '${trapUrl}'\n`,
      `<?xml version="1.0"?><MPD><Period><BaseURL>${trapUrl}</BaseURL></Period></MPD>`,
    ]
    const names = [
      ['a.mp4', 'video/mp4'],
      ['a.ts', 'video/mp2t'],
      ['a.flv', 'video/x-flv'],
      ['a.mpg', 'video/mpeg'],
      ['a.m3u8', 'application/vnd.apple.mpegurl'],
      ['a.avi', 'video/x-msvideo'],
    ] as const
    for (const list of lists)
      for (const [name, type] of names) await refused((await store(Buffer.from(list), name, type)).id)
    expect(trapped).toBe(0)
  })
})

test('V15 a start removes the copies of files that killed processes have left', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-left-'))
  const left = join(directory.path, 'mediabucket-picture-abcdef')
  await mkdir(left)
  await writeFile(join(left, 'source'), 'bytes of a user')
  await utimes(left, 1, 1)
  await using other = await startServer({ TMPDIR: directory.path })
  expect(await readdir(directory.path)).not.toContain('mediabucket-picture-abcdef')
  expect(other.log().map(({ msg }) => msg)).toContain('removed temporary copies of files of killed processes')
})

describe('PDF', () => {
  beforeAll(() => needTools('pdftoppm'))

  test('V14 the variant of a PDF is its first page in the requested size, on white', async () => {
    const { id } = await store(pdf(), 'a.pdf', 'application/pdf')
    const { bytes, item, size } = await picture(id)
    expect(size).toEqual([400, 200])
    expect(await cornersOf(bytes)).toEqual(['red', 'white', 'red', 'white'])
    expect(item).toMatchObject({ width: null, height: null, duration: null })
    expect((await picture(id, 'medium')).size).toEqual([1600, 800])
  })

  test('V6 a page of any size takes bounded time and memory', async () => {
    const { id } = await store(pdf(10_000_000, 10_000_000), 'a.pdf', 'application/pdf')
    for (const side of (await picture(id)).size) expect(Math.abs((side ?? 0) - 400)).toBeLessThan(3)
  })

  test('V15 scripts, external files and servers of a PDF are not used', async () => {
    const actions = [
      `/OpenAction << /S /JavaScript /JS (this.submitForm("${trapUrl}"); app.launchURL("${trapUrl}")) >>`,
      `/OpenAction << /S /URI /URI (${trapUrl}) >>`,
      `/OpenAction << /S /GoToR /F << /FS /URL /F (${trapUrl}) >> /D [0 /Fit] >>`,
      `/OpenAction << /S /Launch /F (/bin/touch) >> /AcroForm << /XFA (<x href="${trapUrl}"/>) >>`,
    ]
    for (const action of actions)
      expect(
        (await picture((await store(pdf(200, 100, action), 'a.pdf', 'application/pdf')).id)).size,
      ).toEqual([400, 200])
    expect(trapped).toBe(0)
  })

  test('V3 a PDF without a page has no variant', async () => {
    const { id } = await store(Buffer.from('%PDF-1.7\n%%EOF'), 'a.pdf', 'application/pdf')
    expect((await refused(id)).detail).toContain('damaged')
  })
})

describe('HEIC', () => {
  test('V14 HEIC has variants, and its size is recorded', async () => {
    const { id, content_type } = await store(
      await heicOf(await quarters(600, 400).png().toBuffer()),
      'a.heic',
      'image/heic',
    )
    expect(content_type).toBe('image/heic')
    const { bytes, item, size } = await picture(id)
    expect(size).toEqual([400, 267])
    expect(await cornersOf(bytes)).toEqual(['red', 'green', 'blue', 'white'])
    expect(item).toMatchObject({ width: 600, height: 400 })
  })

  const shown = (turns: number) => {
    const [topLeft, topRight, bottomLeft, bottomRight] = ['red', 'green', 'blue', 'white']
    return [
      [topLeft, topRight, bottomLeft, bottomRight],
      [topRight, bottomRight, topLeft, bottomLeft],
      [bottomRight, bottomLeft, topRight, topLeft],
      [bottomLeft, topLeft, bottomRight, topRight],
    ][turns]
  }

  test.each([
    [3, 6],
    [2, 3],
    [1, 8],
    [0, 6],
  ])(
    'V2, V8 a HEIC that readers turn %s times has that orientation, whatever its Exif says (%s)',
    async (turns, orientation) => {
      const size = { width: 1024, height: 512 }
      const bytes = await phonePicture(await quarters(1024, 512).png().toBuffer(), size, {
        turns,
        orientation,
      })
      const { id } = await store(bytes, 'a.heic', 'image/heic')
      const { bytes: thumb, item } = await picture(id)
      expect(await cornersOf(thumb)).toEqual(shown(turns))
      const [width, height] = turns % 2 === 0 ? [1024, 512] : [512, 1024]
      expect(item).toMatchObject({ width, height })
    },
  )

  test('V14 a HEIC with several pictures shows its primary one', async () => {
    const [first, second] = [quarters(64, 48), quarters(80, 40).negate()]
    const both = await heicOf(
      await first.removeAlpha().png().toBuffer(),
      await second.removeAlpha().png().toBuffer(),
    )
    // The ids of the pictures that are not hidden.
    const ids = both
      .toString('latin1')
      .split(`infe${Buffer.of(2, 0, 0, 0).toString('latin1')}`)
      .slice(1)
      .map((entry) => entry.slice(0, 2))
    expect(ids).toHaveLength(2)
    for (const [index, size] of [
      [64, 48],
      [80, 40],
    ].entries()) {
      both.write(ids[index] ?? '', both.indexOf('pitm') + 8, 'latin1')
      const { id } = await store(both, 'a.heic', 'image/heic')
      expect((await picture(id)).size).toEqual(size)
    }
  })

  test('V2 transparent parts of a HEIC stay transparent', async () => {
    const { id } = await store(
      await heicOf(await sharp(Buffer.from(hole)).png().toBuffer()),
      'a.heic',
      'image/heic',
    )
    expect((await cornersOf((await picture(id)).bytes)).toSpliced(0, 3)).toEqual(['nothing'])
  })

  test('V13 what an earlier version recorded of a HEIC that it turned twice is corrected by the next render', async () => {
    await using first = await startServer({ MEDIABUCKET_RENDER_AHEAD: 'off' })
    const png = await quarters(600, 400).png().toBuffer()
    const heic = new Uint8Array(await heicOf(png))
    const wrongSizes = [
      [400, 600],
      [600, 400],
    ] as const
    const items = await Promise.all(
      wrongSizes.map(() => upload(first, heic, { name: 'a.heic', type: 'image/heic' })),
    )
    await first.stop()
    const { data, info } = await sharp(png)
      .rotate(180)
      .resize(90, 60)
      .ensureAlpha()
      .raw()
      .toBuffer({ resolveWithObject: true })
    const wrong = rgbaToThumbHash(info.width, info.height, data)
    const db = new DatabaseSync(join(first.data, 'catalog.db'))
    const record = db.prepare('UPDATE items SET thumbhash = ?, width = ?, height = ? WHERE id = ?')
    for (const [index, [width, height]] of wrongSizes.entries())
      record.run(wrong, width, height, items[index]?.id ?? '')
    db.close()
    await rm(join(first.data, 'variants.db'), { force: true })

    await using later = await startServer({}, first.data)
    const headers = { authorization: `Bearer ${first.token}` }
    for (const [index, { id }] of items.entries()) {
      const read = async () => readItem(await later.request(`/api/media/${id}`, { headers }))
      const before = await read()
      expect((await fetch(variantUrl(later, id))).status).toBe(200)
      const item = await until('it is corrected', async () => {
        const found = await read()
        return found.thumbhash === before.thumbhash ? null : found
      })
      expect(item).toMatchObject({ width: 600, height: 400 })
      // Another variant of it has nothing to correct.
      expect((await fetch(variantUrl(later, id, 'medium'))).status).toBe(200)
      await until('it is stored', () => storedVariants(later).rows.length === 2 * (index + 1))
      expect(await read()).toEqual(item)
    }
  })

  /** Long form: MEDIABUCKET_TEST_RENDERS=200. */
  test('V14 photos of phones of 12 megapixels are rendered, two at a time', async () => {
    await using phone = await startServer({ MEDIABUCKET_RENDER_AHEAD: 'off' })
    const rounds = process.env['MEDIABUCKET_TEST_RENDERS']
    const bytes = new Uint8Array(
      await phonePicture(
        await (rounds === undefined ? quarters(512, 512) : noise(512)).png().toBuffer(),
        { width: 512, height: 512 },
        { turns: 3, orientation: 6, declared: { width: 4032, height: 3024 } },
      ),
    )
    let left = Number(rounds ?? 2)
    const statuses: number[] = []
    const renderAll = async () => {
      while (left > 0) {
        left -= 1
        const { id } = await upload(phone, bytes, { name: 'a.heic', type: 'image/heic' })
        const response = await fetch(variantUrl(phone, id))
        await response.arrayBuffer()
        statuses.push(response.status)
      }
    }
    await Promise.all([renderAll(), renderAll()])
    expect(statuses.filter((status) => status !== 200)).toEqual([])
  })

  test('V3 a damaged HEIC has no variant', async () => {
    const whole = await heicOf(await quarters(600, 400).png().toBuffer())
    const { id } = await store(whole.subarray(0, whole.length / 2), 'a.heic', 'image/heic')
    await refused(id)
  })
})

test('V14 without the programs such items have no variants, and the log names the packages once', async () => {
  await using bare = await startServer({ PATH: dirname(process.execPath) })
  const { id, variants } = await upload(bare, new Uint8Array(pdf()), {
    name: 'a.pdf',
    type: 'application/pdf',
  })
  expect(variants).toBeNull()
  const { detail } = await expectProblem(await fetch(variantUrl(bare, id)), 404, 'variant-unavailable')
  expect(detail).toContain('pdftoppm')
  await bare.stop()
  const lines = bare.log().filter(({ msg }) => msg.includes('poppler-utils'))
  expect(lines.map(({ msg }) => msg)).toEqual([
    expect.stringContaining('ffmpeg poppler-utils libheif-examples'),
  ])
})
