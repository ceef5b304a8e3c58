import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bucketWith } from '../harness/bucket.ts'
import { renderCount, storedVariants } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { seededRandom } from '../harness/random.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { itemOf, metadataOf, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { readItem, readItems } from '../harness/wire.ts'

/** Five aspect ratios. */
const sizes = ['square=60x60', 'wide=96x54', 'tall=54x96', 'strip=120x24', 'photo=60x45']
const covers = sizes.map((size) => `${size}:cover:png`)

let server: TestServer
beforeAll(async () => {
  server = await startServer({
    MEDIABUCKET_VARIANTS: [...covers, 'whole=60:png'].join(),
    MEDIABUCKET_RENDER_AHEAD: 'off',
    MEDIABUCKET_ADDRESS_RATE: 'off',
  })
})
afterAll(() => server[Symbol.asyncDispose]())

type Picture = { readonly width: number; readonly height: number; readonly bytes: Buffer }

/** A PNG with blocks of colours that differ from each other. */
async function drawn(next: (limit: number) => number): Promise<Picture> {
  const [width, height] = [60 + next(240), 60 + next(240)]
  const blocks = { width: Math.ceil(width / 12), height: Math.ceil(height / 12) }
  const colours = Buffer.from(Array.from({ length: blocks.width * blocks.height * 3 }, () => next(256)))
  const bytes = await sharp(colours, { raw: { ...blocks, channels: 3 } })
    .resize({ width, height, fit: 'fill', kernel: 'cubic' })
    .png()
    .toBuffer()
  return { width, height, bytes }
}

/** The file whose orientation displays a picture. */
async function stored(picture: Buffer, orientation: number): Promise<Buffer> {
  // Each of 1 to 4, 5 and 7 is its own reverse.
  const turned = orientation === 6 ? 270 : orientation < 5 ? 0 : 90
  const rotated = await sharp(picture).rotate(turned).png().toBuffer()
  const mirrored = sharp(rotated).flop([2, 3, 5].includes(orientation)).flip([3, 4, 7].includes(orientation))
  return await sharp(await mirrored.png().toBuffer())
    .withMetadata({ orientation })
    .png()
    .toBuffer()
}

/** Where a frame begins whose middle is at the focus, as far as the picture reaches. */
const startOf = (share: number, whole: number, part: number) =>
  Math.min(Math.max(Math.round(share * whole - part / 2), 0), whole - part)

/** The part of a picture that a size shows, cut from all of its pixels. */
async function reference(
  { width, height, bytes }: Picture,
  size: string,
  { x, y }: { x: number; y: number },
) {
  const [asked = 0, askedHeight = 0] = (size.split('=')[1] ?? '').split('x').map(Number)
  const scale = Math.min(1, Math.max(asked / width, askedHeight / height))
  const scaled = { width: Math.round(width * scale), height: Math.round(height * scale) }
  const frame = { width: Math.min(asked, scaled.width), height: Math.min(askedHeight, scaled.height) }
  const left = startOf(x, scaled.width, frame.width)
  const top = startOf(y, scaled.height, frame.height)
  const resized = await sharp(bytes)
    .resize({ ...scaled, fit: 'fill' })
    .png()
    .toBuffer()
  return await sharp(resized)
    .extract({ left, top, ...frame })
    .removeAlpha()
    .raw()
    .toBuffer()
}

const uploadFile = async (bytes: Buffer, headers: Record<string, string> = {}) =>
  readItem(
    await server.request('/api/media', {
      method: 'POST',
      body: Uint8Array.from(bytes),
      headers: { 'content-type': 'image/png', ...headers },
    }),
  )

async function variantOf(id: string, name: string) {
  const response = await fetch(`${server.url}/media/${id}?variant=${name}`)
  expect([name, response.status]).toEqual([name, 200])
  return { bytes: Buffer.from(await response.arrayBuffer()), etag: response.headers.get('etag') ?? '' }
}

const edit = (id: string, body: object, headers: Record<string, string> = {}) =>
  server.request(`/api/media/${id}`, {
    method: 'PATCH',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  })

test('M11 of 100 pictures in all orientations, cover sizes of five proportions keep the focus in their frame', {
  timeout: 600_000,
}, async () => {
  const next = seededRandom()
  for (let number = 0; number < 100; number += 1) {
    const picture = await drawn(next)
    const orientation = (number % 8) + 1
    const focus = { x: next(10_001) / 10_000, y: next(10_001) / 10_000 }
    const item = await uploadFile(await stored(picture.bytes, orientation), {
      'mediabucket-focus': `${focus.x},${focus.y}`,
    })
    expect([item.width, item.height, item.focus]).toEqual([picture.width, picture.height, focus])
    await Promise.all(
      sizes.map(async (size) => {
        const name = size.split('=')[0] ?? ''
        const { data, info } = await sharp((await variantOf(item.id, name)).bytes)
          .removeAlpha()
          .raw()
          .toBuffer({ resolveWithObject: true })
        const { variant_sizes } = item
        expect(variant_sizes).toMatchObject({ [name]: { width: info.width, height: info.height } })
        const expected = await reference(picture, size, focus)
        expect(data.length).toBe(expected.length)
        const difference = data.reduce((sum, value, at) => sum + Math.abs(value - (expected[at] ?? 0)), 0)
        expect([number, orientation, name, difference / data.length < 2]).toEqual([
          number,
          orientation,
          name,
          true,
        ])
      }),
    )
  }
})

describe('M11 the focus of an item', () => {
  const grey = (width: number, height: number) =>
    sharp({ create: { width, height, channels: 3, background: '#777777' } })
      .png()
      .toBuffer()

  test('is stated by an upload: as a header, a field of a form, and metadata of tus', async () => {
    const bytes = await grey(100, 50)
    expect((await uploadFile(bytes)).focus).toBeNull()
    const expected = { x: 0.25, y: 1 }
    for (const text of ['0.25,1', ' .25 , 1.0 ', '{"x": 0.25, "y": 1}'])
      expect((await uploadFile(bytes, { 'mediabucket-focus': text })).focus).toEqual(expected)

    const form = new FormData()
    form.append('focus', JSON.stringify(expected))
    form.append('file', new File([Uint8Array.from(bytes)], 'a.png', { type: 'image/png' }))
    const headers = { 'mediabucket-focus': '0,0' }
    const sent = await server.request('/api/media', { method: 'POST', body: form, headers })
    expect((await readItem(sent)).focus).toEqual(expected)

    const tus = tusOf(server)
    const metadata = metadataOf({ filename: 'a.png', focus: '0.25,1' })
    const created = await tus.createWithLength(bytes.byteLength, { 'upload-metadata': metadata })
    expect((await itemOf(server, await tus.sendChunk(created, 0, Uint8Array.from(bytes)))).focus).toEqual(
      expected,
    )
    const wrong = { 'upload-length': '1', 'upload-metadata': metadataOf({ focus: '2,2' }) }
    await expectProblem(await tus.send('POST', '/api/uploads', wrong), 400, 'upload-malformed')
    const listed = await readItems(await server.request('/api/items?order=newest&limit=1'))
    expect(listed.data[0]?.focus).toEqual(expected)
  })

  test.each([
    '',
    '1',
    '0.5;0.5',
    '1.1,0',
    '-0.1,0',
    'a,b',
    '{"x":0.5}',
    '{"x":"0","y":0}',
    '{"x":0,"y":0,"z":0}',
    '0,0,0',
    'NaN,0',
    '1e-1,0',
  ])('another text gets a problem that says what is right: %o', async (text) => {
    const headers = { 'mediabucket-focus': text }
    const problem = await expectProblem(
      await server.request('/api/media', { method: 'POST', body: 'x', headers }),
      400,
      'request-malformed',
    )
    expect(problem.detail).toMatch(/x and y, numbers from 0 to 1/)
    const form = new FormData()
    form.append('focus', text)
    form.append('file', new File(['x'], 'a.txt'))
    await expectProblem(
      await server.request('/api/media', { method: 'POST', body: form }),
      400,
      'form-malformed',
    )
  })

  test('is changed by PATCH: the service renders the cover sizes again and keeps the others', async () => {
    const { bytes } = await drawn(seededRandom())
    const item = await uploadFile(bytes)
    const before = { square: await variantOf(item.id, 'square'), whole: await variantOf(item.id, 'whole') }
    const changed = await edit(item.id, { focus: { x: 0, y: 0.123456 } })
    expect((await readItem(changed)).focus).toEqual({ x: 0, y: 0.1235 })
    const described = await server.request(`/api/media/${item.id}`)
    expect((await readItem(described)).focus).toEqual({ x: 0, y: 0.1235 })
    const rendered = await renderCount(server)
    const square = await variantOf(item.id, 'square')
    expect(square.etag).not.toBe(before.square.etag)
    expect(await variantOf(item.id, 'whole')).toEqual(before.whole)
    expect(await renderCount(server)).toBe(rendered + 1)
    const keys = () => storedVariants(server).rows.filter((name) => name.startsWith(item.id))
    await until('the earlier crop is removed', () => keys().length === 2)

    const { data } = Object(await (await server.request('/api/changes?since=now&wait=0')).json())
    expect(data).toEqual([])
    // Null removes it.
    expect((await readItem(await edit(item.id, { focus: null }))).focus).toBeNull()
    expect(await variantOf(item.id, 'square')).toEqual(before.square)
  })

  test('V4 has no 304 and no range of the earlier variant for a date', async () => {
    const { bytes } = await drawn(seededRandom())
    const item = await uploadFile(bytes)
    const before = await variantOf(item.id, 'square')
    const date = (await fetch(item.url)).headers.get('last-modified') ?? ''
    expect(new Date(date).toUTCString()).toBe(date)
    await edit(item.id, { focus: { x: 0, y: 1 } })
    const ask = (headers: Record<string, string>) =>
      fetch(`${server.url}/media/${item.id}?variant=square`, { headers })
    const changed = await ask({ 'if-modified-since': date })
    expect([changed.status, changed.headers.get('last-modified')]).toEqual([200, null])
    const whole = Buffer.from(await changed.arrayBuffer())
    expect(whole.equals(before.bytes)).toBe(false)
    const rest = await ask({ range: 'bytes=20-', 'if-range': date })
    expect([rest.status, Buffer.from(await rest.arrayBuffer())]).toEqual([200, whole])
    expect((await ask({ 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' })).status).toBe(200)
  })

  test('is a change of the feed only if it differs, and If-Match refuses a state that is over', async () => {
    const item = await uploadFile(await grey(20, 10))
    const etag = (await server.request(`/api/media/${item.id}`)).headers.get('etag') ?? ''
    const { next_cursor } = Object(await (await server.request('/api/changes?since=now')).json())
    expect((await edit(item.id, { focus: { x: 1, y: 1 } }, { 'if-match': etag })).status).toBe(200)
    await expectProblem(
      await edit(item.id, { focus: null }, { 'if-match': etag }),
      412,
      'precondition-failed',
    )
    await edit(item.id, { focus: { x: 1, y: 1 } })
    const { data } = Object(await (await server.request(`/api/changes?after=${next_cursor}`)).json())
    expect(data).toHaveLength(1)
    expect(data[0]).toMatchObject({ type: 'edited', item: { focus: { x: 1, y: 1 } } })
  })

  test.each([0.5, [0, 0], { x: 0.5 }, { x: 2, y: 0 }, { x: '0', y: 0 }, { x: 0, y: 0, z: 0 }, 'center'])(
    'PATCH refuses %o',
    async (focus) => {
      const item = await uploadFile(await grey(2, 2))
      const { errors } = await expectProblem(await edit(item.id, { focus }), 400, 'json-malformed')
      expect(errors?.[0]).toMatchObject({ parameter: 'focus', minimum: 0, maximum: 1 })
    },
  )
})

describe('V1 the crop of pictures without a focus', () => {
  test('keeps what attracts the eye, if the bucket or the service wants it', async () => {
    // Grey, with a face-coloured disc at the right.
    const disc = Buffer.from(
      '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="60"><circle cx="30" cy="30" r="28" fill="#e0a080"/></svg>',
    )
    const bytes = await sharp({ create: { width: 400, height: 100, channels: 3, background: '#808080' } })
      .composite([{ input: disc, left: 335, top: 20 }])
      .png()
      .toBuffer()
    const bucket = await bucketWith(server)
    const item = await uploadFile(bytes, { authorization: bucket.authorization })
    const reddest = async () => {
      const { channels } = await sharp((await variantOf(item.id, 'square')).bytes).stats()
      return channels[0]?.max ?? 0
    }
    expect(await reddest()).toBeLessThan(140)
    const manager = await makeToken(server, '--service', '--scope', 'buckets:manage')
    const set = (crop: string | null) =>
      server.request(`/api/buckets/${bucket.name}`, {
        method: 'PATCH',
        body: JSON.stringify({ crop }),
        headers: { 'content-type': 'application/json', authorization: manager.authorization },
      })
    expect((await set('attention')).status).toBe(200)
    expect(await reddest()).toBeGreaterThan(200)
    // A focus comes first.
    const headers = { authorization: bucket.authorization }
    await edit(item.id, { focus: { x: 0, y: 0.5 } }, headers)
    expect(await reddest()).toBeLessThan(140)
    await edit(item.id, { focus: null }, headers)
    await set(null)
    expect(await reddest()).toBeLessThan(140)
    await expectProblem(await set('entropy'), 400, 'json-malformed')
  })
})
