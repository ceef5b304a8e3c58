import { randomUUID } from 'node:crypto'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { quarters, renderCount, storedVariants } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readItems } from '../harness/wire.ts'

const serviceSizes = { MEDIABUCKET_VARIANTS: 'thumb=300, wide=500x100', MEDIABUCKET_RENDER_AHEAD: 'off' }

let server: TestServer
let manager: string
let picture: Uint8Array<ArrayBuffer>
beforeAll(async () => {
  server = await startServer(serviceSizes)
  manager = (await makeToken(server, '--service', '--scope', 'buckets:manage,media:read')).authorization
  picture = Uint8Array.from(await quarters(900, 600).png().toBuffer())
})
afterAll(() => server[Symbol.asyncDispose]())

/** A bucket with these options, and an item in it. */
async function bucketOf(...options: string[]) {
  const name = randomUUID()
  const { authorization } = await makeToken(server, '--bucket', name)
  if (options.length > 0) await runHere(server.data, 'bucket set', name, ...options)
  const item = await upload(server, picture, { name: 'a.png', type: 'image/png', authorization })
  const request = (path: string, init: RequestInit = {}) =>
    server.request(path, { ...init, headers: { authorization, ...Object(init.headers) } })
  const set = (...options: string[]) => runHere(server.data, 'bucket set', name, ...options)
  const patch = (body: object) =>
    server.request(`/api/buckets/${name}`, {
      method: 'PATCH',
      body: JSON.stringify(body),
      headers: { authorization: manager, 'content-type': 'application/json' },
    })
  return { name, authorization, item, request, set, patch }
}

const get = (id: string, query: string, headers: Record<string, string> = {}) =>
  fetch(`${server.url}/media/${id}${query}`, { headers })

/** The dimensions and the ETag of a variant. */
async function shown(id: string, name: string, headers: Record<string, string> = {}) {
  const response = await get(id, `?variant=${name}`, headers)
  expect([name, response.status]).toEqual([name, 200])
  const { width, height } = await sharp(await response.arrayBuffer()).metadata()
  return { size: [width, height], etag: response.headers.get('etag') ?? '' }
}

describe('V19 the sizes of a bucket', () => {
  test('replace those of the service but thumb and medium, from the next request on', async () => {
    const { item, set, request } = await bucketOf()
    expect(Object.keys(item.variants ?? {})).toEqual(['thumb', 'medium', 'wide'])
    expect((await shown(item.id, 'wide')).size).toEqual([150, 100])
    await set('--variants', 'card=320x180:cover, 32')
    expect((await shown(item.id, 'card')).size).toEqual([320, 180])
    expect((await shown(item.id, '32')).size).toEqual([32, 21])
    expect((await shown(item.id, 'thumb')).size).toEqual([300, 200])
    const { errors } = await expectProblem(await get(item.id, '?variant=wide'), 400, 'variant-unknown')
    expect(errors?.[0]?.accepted).toEqual(['thumb', 'medium', 'card', '32'])
    const selected = await get(item.id, '?w=20')
    expect(selected.headers.get('mediabucket-variant')).toBe('32')

    const described = await readItem(await request(`/api/media/${item.id}`))
    expect(Object.keys(described.variants ?? {})).toEqual(['32', 'thumb', 'medium', 'card'])
    expect(described.variant_sizes).toMatchObject({ card: { width: 320, height: 180 } })
    const listed = await readItems(await request('/api/items'))
    expect(listed.data[0]?.variants).toEqual(described.variants)
    const added = await readItem(
      await request('/api/media', {
        method: 'POST',
        body: picture,
        headers: { 'content-type': 'image/png' },
      }),
    )
    expect(Object.keys(added.variants ?? {})).toEqual(['32', 'thumb', 'medium', 'card'])
    const { data } = Object(await (await request('/api/changes')).json())
    expect(Object.keys(data[0].item.variants)).toEqual(['32', 'thumb', 'medium', 'card'])

    await set('--variants', 'none')
    await expectProblem(await get(item.id, '?variant=card'), 400, 'variant-unknown')
    expect((await shown(item.id, 'wide')).size).toEqual([150, 100])
  })

  test('are set by PATCH and at creation, in one spelling; lists have another ETag', async () => {
    const { item, request, patch } = await bucketOf('--variants', 'card=64:contain')
    const before = await request('/api/items')
    expect((await shown(item.id, 'card')).size).toEqual([64, 43])
    const variants = ['card=320x180:jpeg:cover:q70', 'thumb=50x50:contain']
    const changed = await patch({ variants })
    expect(await changed.json()).toMatchObject({ variants: ['card=320x180:cover:jpeg:q70', 'thumb=50'] })
    expect((await shown(item.id, 'thumb')).size).toEqual([50, 33])
    expect((await request('/api/items')).headers.get('etag')).not.toBe(before.headers.get('etag'))
    expect(await (await request('/api/bucket')).json()).toMatchObject({ crop: null, public_variants: null })
    const removed = await patch({ variants: null })
    expect(await removed.json()).toMatchObject({ variants: null })
  })

  test.each([
    ...['card', 'card=0', 'card=9999', 'card=1:fill', 'card=1:cover:contain', 'Card=1', 'card=1:jpeg:png'],
    ...[
      'card=1:q0',
      'card=1:q101',
      'card=1:q50:q60',
      'card=1:png:q60',
      'card=1:gif:q60',
      'card=1:animated:jpeg',
    ],
    ...['card=1:animated:avif', 'card=1:tiff', 'card=1:'],
  ])('an entry that is malformed gets a problem that lists what is right: %s', async (entry) => {
    const { patch, set, request } = await bucketOf()
    const { errors } = await expectProblem(await patch({ variants: [entry] }), 400, 'json-malformed')
    expect(errors?.[0]).toMatchObject({ parameter: 'variants', maximum: 20, unit: 'entries' })
    expect(errors?.[0]?.detail).toMatch(/cover.*jpeg, png, webp, avif.*q1.*animated/)
    await expect(set('--variants', entry)).rejects.toThrow(/--variants takes names .*jpeg, png, webp, avif/)
    expect(await (await request('/api/bucket')).json()).toMatchObject({ variants: null })
  })

  test('are at most 20 with thumb and medium', async () => {
    const { patch } = await bucketOf()
    const sizes = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}`)
    await expectProblem(await patch({ variants: sizes(19) }), 400, 'json-malformed')
    await expectProblem(await patch({ variants: [] }), 400, 'json-malformed')
    expect((await patch({ variants: sizes(18) })).status).toBe(200)
    expect((await patch({ variants: [...sizes(18), 'thumb=9', 'medium=9'] })).status).toBe(200)
  })

  test('have files and ETags of their own if they are redefined; the earlier ones come back as they were', async () => {
    const { item, set } = await bucketOf('--variants', 'card=100:cover')
    const first = await shown(item.id, 'card')
    await set('--variants', 'card=120:cover')
    const second = await shown(item.id, 'card', { 'if-none-match': first.etag })
    expect(second.size).toEqual([120, 120])
    expect(second.etag).not.toBe(first.etag)
    const rendered = await renderCount(server)
    await set('--variants', 'card=100:cover')
    expect(await shown(item.id, 'card')).toEqual(first)
    expect(await renderCount(server)).toBe(rendered)
  })

  test('do not show in the responses whether an item exists that the caller may not read', async () => {
    const { item } = await bucketOf('--variants', 'card=100', '--private', 'on')
    const unknown = '0'.repeat(item.id.length)
    for (const [query, status, code] of [
      ['?variant=card', 400, 'variant-unknown'],
      ['?variant=wide', 404, 'media-unknown'],
      ['?w=5', 404, 'media-unknown'],
    ] as const)
      for (const id of [item.id, unknown]) {
        const problem = await expectProblem(await get(id, query), status, code)
        expect(JSON.stringify(problem)).not.toContain('card')
      }
  })

  test('are those that links are created for', async () => {
    const { item, request } = await bucketOf('--variants', 'card=100', '--private', 'on')
    const create = (variant: string) =>
      request(`/api/media/${item.id}/links`, {
        method: 'POST',
        body: JSON.stringify({ variant }),
        headers: { 'content-type': 'application/json' },
      })
    await expectProblem(await create('wide'), 400, 'json-malformed')
    const { url } = Object(await (await create('card')).json())
    expect((await fetch(url)).headers.get('mediabucket-variant')).toBe('card')
  })

  test('are not in the metrics, so that buckets cannot add series without end', async () => {
    const { item } = await bucketOf('--variants', 'secretive=100')
    await shown(item.id, 'secretive')
    const text = await (await fetch(`${server.url}/metrics`)).text()
    expect(text).not.toContain('secretive')
    expect(text).toContain('variant="own"')
  })

  test('V9 variants of sizes that no longer exist are removed from the store by a sweep', async () => {
    await using first = await startServer({ ...serviceSizes, MEDIABUCKET_INLINE_SIZE: '2000' })
    const kept = await upload(first, picture, { name: 'a.png', type: 'image/png' })
    const fetchAll = async (...names: string[]) => {
      for (const name of names)
        await (await fetch(`${first.url}/media/${kept.id}?variant=${name}`)).arrayBuffer()
    }
    await runHere(first.data, 'bucket set', 'default', '--variants', 'card=320x180:cover:png, 64')
    await fetchAll('card', '64', 'thumb')
    await until('all are stored', () => namesOf(first).length === 3)
    await runHere(first.data, 'bucket set', 'default', '--variants', '64')
    await first.stop()
    await using later = await startServer(serviceSizes, first.data)
    await until('the variant of the size is removed', () => namesOf(later).length === 2)
    expect(namesOf(later).map((name) => name.split('.')[1])).toEqual(['contain-300x300-3', 'contain-64x64-3'])
    await later.stop()
    await using last = await startServer({ MEDIABUCKET_RENDER_AHEAD: 'off' }, first.data)
    await until('sizes of the service, too', () => namesOf(last).length === 1)
  })
})

describe('V21 the public variants of a private bucket', () => {
  test('are served without a token or a signature, and nothing else of the bucket', async () => {
    const { item, name, set, request } = await bucketOf('--private', 'on', '--public-variants', 'thumb,wide')
    expect(await (await request('/api/bucket')).json()).toMatchObject({ public_variants: ['thumb', 'wide'] })
    const open = await bucketOf()
    for (const query of ['?variant=thumb', '?variant=wide', '?w=300']) {
      const [response, usual] = [await get(item.id, query), await get(open.item.id, query)]
      expect([query, response.status]).toEqual([query, 200])
      // As those of a public bucket, for every cache.
      for (const header of ['cache-control', 'vary', 'content-type', 'mediabucket-variant', 'etag'])
        expect([header, response.headers.get(header)]).toEqual([header, usual.headers.get(header)])
      const etag = response.headers.get('etag') ?? ''
      expect((await get(item.id, query, { 'if-none-match': etag })).status).toBe(304)
    }
    for (const query of ['', '?download', '?variant=medium', '?w=501', '?w=5000'])
      await expectProblem(await get(item.id, query), 404, 'media-unknown')
    await expectProblem(await get('0'.repeat(item.id.length), '?variant=thumb'), 404, 'media-unknown')

    // Of several processes, each sees the switch with its next request.
    await set('--public-variants', 'wide')
    await expectProblem(await get(item.id, '?variant=thumb'), 404, 'media-unknown')
    expect((await get(item.id, '?variant=wide')).status).toBe(200)
    await set('--public-variants', 'none')
    await expectProblem(await get(item.id, '?variant=wide'), 404, 'media-unknown')
    await runHere(server.data, 'bucket set', name, '--private', 'off')
    expect((await get(item.id, '?variant=wide')).status).toBe(200)
  })

  test('have plain URLs in lists, with signed URLs for the rest', async () => {
    const { item, request, patch } = await bucketOf('--private', 'on', '--signed-pages', 'on')
    const before = await request('/api/items')
    expect((await patch({ public_variants: ['thumb', 'thumb'] })).status).toBe(200)
    const after = await request('/api/items')
    expect(after.headers.get('etag')).not.toBe(before.headers.get('etag'))
    const listed = (await readItems(after)).data[0]
    const described = await readItem(await request(`/api/media/${item.id}`))
    for (const { url, variants } of [listed, described].flatMap((one) => (one ? [one] : []))) {
      expect(variants?.thumb).toBe(`${server.url}/media/${item.id}.png?variant=thumb`)
      expect(url).toMatch(/signature=/)
      expect(variants?.medium).toMatch(/signature=.*&variant=medium$/)
      for (const one of [url, ...Object.values(variants ?? {})]) expect((await fetch(one)).status).toBe(200)
    }
  })

  test('are those of its list: a name without a size has no effect', async () => {
    const { item, set } = await bucketOf('--private', 'on', '--public-variants', 'wide')
    await set('--variants', 'card=100')
    await expectProblem(await get(item.id, '?variant=wide'), 404, 'media-unknown')
    await expectProblem(await get(item.id, '?variant=card'), 400, 'variant-unknown')
    await set('--public-variants', 'card')
    expect((await get(item.id, '?variant=card')).status).toBe(200)
  })

  test.each([['Thumb'], ['a b'], [''], Array.from({ length: 21 }, (_, index) => `n${index}`)])(
    'names that no size can have get a problem: %s',
    async (...names) => {
      const { patch } = await bucketOf()
      const { errors } = await expectProblem(await patch({ public_variants: names }), 400, 'json-malformed')
      expect(errors?.[0]?.parameter).toBe('public_variants')
    },
  )
})

const namesOf = (server: Pick<TestServer, 'data'>): readonly string[] => {
  const { rows, files } = storedVariants(server)
  return [...rows, ...files].toSorted()
}
