import { thumbHashToApproximateAspectRatio, thumbHashToRGBA } from 'thumbhash'
import { beforeAll, expect, test } from 'vitest'
import { quarters, uploadPicture, variantUrl } from '../harness/pictures.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readItems } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const describe = async (id: string) => readItem(await server.request(`/api/media/${id}`))

/** The hash of an item, after its first variant was rendered. */
async function hashOf(id: string): Promise<Uint8Array> {
  expect((await fetch(variantUrl(server, id))).status).toBe(200)
  const hash = await until('it is recorded', async () => (await describe(id)).thumbhash)
  return Buffer.from(hash, 'base64')
}

test('V13 thumbhash is null until the first variant is rendered, and then a placeholder of the picture', async () => {
  const stored = await uploadPicture(server, quarters(600, 300).jpeg().toBuffer(), 'image/jpeg')
  expect(stored).toMatchObject({ thumbhash: null, duration: null })
  const hash = await hashOf(stored.id)
  expect(hash.length).toBeLessThan(30)
  expect(thumbHashToApproximateAspectRatio(hash)).toBeCloseTo(2, 0)
  const { w, h, rgba } = thumbHashToRGBA(hash)
  const at = (x: number, y: number) => [...rgba.slice((y * w + x) * 4, (y * w + x) * 4 + 4)]
  const [red = 0, green = 0, blue = 0, alpha] = at(2, 2)
  expect(red).toBeGreaterThan(Math.max(green, blue) + 50)
  expect(alpha).toBe(255)
  expect(Math.min(...at(w - 3, h - 3))).toBeGreaterThan(140)
})

test('V13 the hash is recorded once: the revision changes with the first variant and not with later ones', async () => {
  const { id } = await uploadPicture(server, quarters(90, 60).png().toBuffer(), 'image/png')
  const tag = async () => (await server.request('/api/items?limit=1')).headers.get('etag')
  const before = await tag()
  const hash = await hashOf(id)
  const after = await tag()
  expect(after).not.toBe(before)
  for (const accept of ['*/*', 'image/avif'])
    expect((await fetch(variantUrl(server, id, 'medium'), { headers: { accept } })).status).toBe(200)
  expect(Buffer.from((await describe(id)).thumbhash ?? '', 'base64')).toEqual(hash)
  expect(await tag()).toBe(after)
  const { data } = await readItems(await server.request('/api/items?order=newest&limit=1'))
  expect(data).toMatchObject([{ id, thumbhash: Buffer.from(hash).toString('base64') }])
})

test.each(['grey', 'transparent', '16 bits', 'one pixel'])(
  'V13 a picture of this kind has a hash: %s',
  async (kind) => {
    const base = quarters(60, 40)
    const pictures = {
      grey: base.greyscale().png(),
      transparent: base.ensureAlpha(0.3).png(),
      '16 bits': base.toColourspace('rgb16').png(),
      'one pixel': quarters(2, 2).resize(1, 1).png(),
    }
    const picture = pictures[kind as keyof typeof pictures]
    const { id } = await uploadPicture(server, picture.toBuffer(), 'image/png')
    expect(thumbHashToRGBA(await hashOf(id)).rgba.length).toBeGreaterThan(0)
  },
)

test('V13 an item without variants has no hash', async () => {
  const { id, thumbhash } = await upload(server, 'hello', { name: 'a.txt', type: 'text/plain' })
  await fetch(variantUrl(server, id))
  expect([thumbhash, (await describe(id)).thumbhash]).toEqual([null, null])
})
