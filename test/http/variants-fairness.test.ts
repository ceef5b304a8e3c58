import { expect, test } from 'vitest'
import { bucketWith } from '../harness/bucket.ts'
import { quarters, variantUrl } from '../harness/pictures.ts'
import { startServer } from '../harness/server.ts'

test('V12 a bucket with many expensive pictures delays no thumbnail, listing or upload of another bucket', async () => {
  await using server = await startServer({ MEDIABUCKET_VARIANT_PROCESSES: '2' })
  const modest = await bucketWith(server)
  const store = async (picture: Buffer, authorization?: string) => {
    const response = await server.request('/api/media', {
      method: 'POST',
      headers: { 'content-type': 'image/png', ...(authorization === undefined ? {} : { authorization }) },
      body: new Uint8Array(picture),
    })
    expect(response.status).toBe(201)
    return response.headers.get('location')?.split('/').at(-1) ?? ''
  }
  const large = await quarters(3000, 2000).png().toBuffer()
  const expensive = await Promise.all(Array.from({ length: 12 }, () => store(large)))
  const small = await quarters(100, 100).png().toBuffer()
  const cheap = await store(small, modest.authorization)

  let rendered = 0
  const thumbnails = expensive.map(async (id) => {
    const response = await fetch(variantUrl(server, id))
    await response.arrayBuffer()
    rendered += 1
    return response.status
  })
  // Both processes are busy, and more pictures wait.
  await Promise.race(thumbnails)
  const before = rendered
  const listing = await server.request('/api/media', { headers: { authorization: modest.authorization } })
  expect(listing.status).toBe(200)
  await store(small, modest.authorization)
  expect((await fetch(variantUrl(server, cheap))).status).toBe(200)
  // In the order of arrival it would be the last of 13.
  expect(rendered - before, 'thumbnails of the other bucket that were rendered first').toBeLessThan(9)
  expect(await Promise.all(thumbnails)).toEqual(expensive.map(() => 200))
})
