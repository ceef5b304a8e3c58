import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  cornersOf,
  quarters,
  renderCount,
  storedVariants,
  uploadPicture,
  variantUrl,
} from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItems } from '../harness/wire.ts'

const browser = { accept: 'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8' }

let server: TestServer
let picture: Awaited<ReturnType<typeof uploadPicture>>
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_VARIANTS: 'card=320x180:cover, strip=300x100, 32' })
  picture = await uploadPicture(server, quarters(900, 600).png().toBuffer(), 'image/png')
})
afterAll(() => server[Symbol.asyncDispose]())

const get = async (name: string, headers: Record<string, string> = {}, { id } = picture) => {
  const response = await fetch(variantUrl(server, id, name), { headers })
  expect(response.status).toBe(200)
  const bytes = Buffer.from(await response.arrayBuffer())
  const { format, compression, width, height } = await sharp(bytes).metadata()
  return { response, bytes, shape: [compression ?? format, width, height] }
}

test.each([
  ['thumb', 400, 267],
  ['medium', 900, 600],
  ['card', 320, 180],
  ['strip', 150, 100],
  ['32', 32, 21],
])('V1 the size %s of the operator is %i × %i pixels, in both formats', async (name, width, height) => {
  const [webp, avif] = [await get(name), await get(name, browser)]
  expect([webp.shape, avif.shape]).toEqual([
    ['webp', width, height],
    ['av1', width, height],
  ])
  for (const { bytes } of [webp, avif])
    expect(await cornersOf(bytes)).toEqual(['red', 'green', 'blue', 'white'])
})

test('V1 a picture that is smaller than a size is not enlarged; with cover it is cut', async () => {
  const small = await uploadPicture(server, quarters(200, 190).png().toBuffer(), 'image/png')
  expect((await get('card', {}, small)).shape).toEqual(['webp', 200, 180])
  expect((await get('strip', {}, small)).shape).toEqual(['webp', 105, 100])
})

test.each(['33', '320', 'CARD', 'card=', 'large', 'thumb-3', 'thumb-3-avif'])(
  'V1 a size that the operator has not listed gets a 400 problem and is not rendered: %s',
  async (name) => {
    const before = await renderCount(server)
    for (const headers of [{}, browser]) {
      const response = await fetch(variantUrl(server, picture.id, encodeURIComponent(name)), { headers })
      const { errors } = await expectProblem(response, 400, 'variant-unknown')
      expect(errors?.[0]?.detail).toBe('variant accepts one of: thumb, medium, card, strip, 32.')
    }
    expect(await renderCount(server)).toBe(before)
  },
)

const withQuery = (query: string, headers: Record<string, string> = {}) =>
  fetch(`${server.url}/media/${picture.id}?${query}`, { headers })

test.each([
  ['w=1', '32'],
  ['w=32', '32'],
  ['width=33', 'strip'],
  ['w=301', 'thumb'],
  ['w=400', 'thumb'],
  ['w=401&v=2', 'medium'],
  ['other=1&w=1600', 'medium'],
  ['w=99999&wait=60', 'medium'],
])(
  'V18 a width selects the smallest size of whole pictures that is at least as wide: ?%s is %s',
  async (query, name) => {
    for (const headers of [{}, browser, {}]) {
      const [selected, named] = [await withQuery(query, headers), await get(name, headers)]
      expect([selected.status, selected.headers.get('mediabucket-variant')]).toEqual([200, name])
      for (const header of ['etag', 'cache-control', 'content-type', 'vary', 'mediabucket-variant'])
        expect([header, selected.headers.get(header)]).toEqual([header, named.response.headers.get(header)])
      expect(Buffer.from(await selected.arrayBuffer())).toEqual(named.bytes)
      const etag = named.response.headers.get('etag') ?? ''
      const unchanged = await withQuery(query, { ...headers, 'if-none-match': etag })
      expect([unchanged.status, unchanged.headers.get('mediabucket-variant')]).toEqual([304, name])
    }
  },
)

test.each([
  ...['w=', 'w=0', 'w=-1', 'w=1.5', 'w=100000', 'w=640px', 'w=1&w=2', 'w=1&width=1', 'w=100&variant=thumb'],
  ...['h=640', 'height=1', 'size=large', 'fit=cover', 'format=webp', 'fm=jpg', 'quality=80', 'q=80', 'dpr=2'],
  ...['w=100&q=80', 'variant=thumb&fit=crop', 'crop=1:1', 'resize=1', 'auto=format', 'thumb', 'thumbnail=1'],
])(
  'V18 a parameter that would be ignored, although it looks like a size, gets a 400 problem: ?%s',
  async (query) => {
    const { errors } = await expectProblem(await withQuery(query), 400, 'parameter-malformed')
    expect(errors?.[0]?.detail).toMatch(/^(?=.*\bw(idth)?\b).*\bvariant\b/)
  },
)

test('V18 the response with the file names no size, and other parameters are ignored', async () => {
  const response = await withQuery('v=2&utm_source=mail&page=3')
  expect([response.status, response.headers.get('mediabucket-variant')]).toEqual([200, null])
  expect(response.headers.get('content-type')).toBe('image/png')
})

test('V18 thousands of widths and parameters render and store nothing new', async () => {
  for (const name of ['32', 'strip', 'thumb', 'medium']) await get(name)
  const before = await renderCount(server)
  const stored = storedVariants(server)
  for (let round = 0; round < 2_000; round += 50)
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const width = round + index + 1
        const query = index % 3 === 0 ? `w=${width}&h=${width}` : `w=${width}`
        const response = await withQuery(query)
        await response.arrayBuffer()
        expect(response.status).toBe(index % 3 === 0 ? 400 : 200)
      }),
    )
  expect([await renderCount(server), storedVariants(server)]).toEqual([before, stored])
})

test('M1 variants of a media object are the sizes of the operator, and their URLs work', async () => {
  const { variants } = picture
  expect(Object.keys(variants ?? {}).toSorted()).toEqual(['32', 'card', 'medium', 'strip', 'thumb'])
  for (const url of Object.values(variants ?? {})) expect((await fetch(url)).status).toBe(200)
  const described = await (await server.request(`/api/media/${picture.id}`)).json()
  expect(described).toMatchObject({ variants })
})

const grey = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: '#777777' } })

test.each([
  ['JPEG', () => grey(269, 114).jpeg()],
  ['rotated JPEG', () => grey(1811, 503).withMetadata({ orientation: 6 }).jpeg()],
  ['PNG that is smaller than most sizes', () => grey(200, 190).png()],
  ['GIF with a side of one pixel', () => grey(700, 1).gif()],
])('M1 variant_sizes of a media object are the dimensions of the variants of a %s', async (_name, draw) => {
  const picture = await upload(server, await draw().toBuffer())
  const listed = (await readItems(await server.request('/api/items?limit=1&order=newest'))).data[0]
  expect(listed?.variant_sizes).toEqual(picture.variant_sizes)
  for (const [name, { width, height }] of Object.entries(picture.variant_sizes ?? {}))
    expect([name, ...(await get(name, {}, picture)).shape]).toEqual([name, 'webp', width, height])
  expect(Object.keys(picture.variant_sizes ?? {})).toEqual(Object.keys(picture.variants ?? {}))
})

test('M1 variant_sizes is null while the dimensions of a picture are unknown', async () => {
  const gif = Buffer.from('GIF89a\0\0\0\0\0\0\0;', 'latin1')
  const { variants, variant_sizes } = await upload(server, gif)
  expect([variants === null, variant_sizes]).toEqual([false, null])
})

test('V4 the format follows Accept: Vary names it, and each format has its own type, name and ETag', async () => {
  const [webp, avif] = [await get('thumb'), await get('thumb', browser)]
  const shown = ({ response: { headers } }: typeof webp) =>
    ['content-type', 'content-disposition', 'vary'].map((name) => headers.get(name))
  expect(shown(webp)).toEqual(['image/webp', 'inline; filename=picture.webp', 'Accept'])
  expect(shown(avif)).toEqual(['image/avif', 'inline; filename=picture.avif', 'Accept'])
  const [webpTag, avifTag] = [webp, avif].map(({ response }) => response.headers.get('etag') ?? '')
  expect(webpTag).not.toBe(avifTag)
  // A stored response of one format does not validate for the other.
  const conditional = (tag: string | undefined, headers: Record<string, string>) =>
    fetch(variantUrl(server, picture.id), { headers: { ...headers, 'if-none-match': tag ?? '' } })
  const [unchanged, other] = [await conditional(avifTag, browser), await conditional(avifTag, {})]
  expect([unchanged.status, unchanged.headers.get('vary'), other.status]).toEqual([304, 'Accept', 200])
  expect((await fetch(picture.url)).headers.get('vary')).toBeNull()
})

test('V4 cached variants are sent in the format of each request', async () => {
  const [webp, avif] = [await get('card'), await get('card', browser)]
  for (let round = 0; round < 5; round += 1) {
    expect((await get('card')).bytes).toEqual(webp.bytes)
    expect((await get('card', browser)).bytes).toEqual(avif.bytes)
    expect((await get('card', { accept: 'image/avif;q=0.1, */*' })).bytes).toEqual(webp.bytes)
  }
})

test('V7 deleting an item removes its variants of all sizes and formats, also of sizes that were removed from the list', async () => {
  await using first = await startServer({
    MEDIABUCKET_VARIANTS: 'card=320x180:cover',
    MEDIABUCKET_INLINE_SIZE: '0',
  })
  const { id } = await uploadPicture(first, quarters(900, 600).png().toBuffer(), 'image/png')
  for (const name of ['card', 'thumb'])
    for (const headers of [{}, browser])
      await (await fetch(variantUrl(first, id, name), { headers })).arrayBuffer()
  await first.stop()
  expect(storedVariants(first).files).toHaveLength(4)
  await using later = await startServer({}, first.data)
  await expectProblem(await fetch(variantUrl(later, id, 'card')), 400, 'variant-unknown')
  const headers = { authorization: `Bearer ${first.token}` }
  const removed = await later.request(`/api/media/${id}`, { method: 'DELETE', headers })
  expect(removed.status).toBe(204)
  await until('all are removed', () => storedVariants(later).files.length === 0)
})
