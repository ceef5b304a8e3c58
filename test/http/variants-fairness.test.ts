import { expect, test } from 'vitest'
import { bucketWith } from '../harness/bucket.ts'
import { film, heicOf, longFilm, pdf } from '../harness/films.ts'
import { endlessPdf } from '../harness/pdf.ts'
import { phonePicture } from '../harness/phone-pictures.ts'
import { crowdedTiff, quarters, renderersOf, variantUrl } from '../harness/pictures.ts'
import { signal } from '../harness/processes.ts'
import { startServer } from '../harness/server.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

test('V12 a bucket with many expensive pictures delays no thumbnail, listing or upload of another bucket', async () => {
  // So many that some wait when the processes are stopped, although these may have rendered some before.
  const sizes = Array.from({ length: 16 }, (_, index) => `${1000 + index}`)
  await using server = await startServer({
    MEDIABUCKET_VARIANT_PROCESSES: '2',
    MEDIABUCKET_VARIANTS: sizes.join(),
    MEDIABUCKET_RENDER_AHEAD: 'off',
  })
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
  const expensive = await Promise.all(Array.from({ length: 6 }, () => store(large)))
  const small = await quarters(100, 100).png().toBuffer()
  const cheap = await store(small, modest.authorization)

  const thumbnails = expensive.map(async (id) => {
    // On a busy machine the last ones wait so long that they are refused.
    const response = await until('a response', async () => {
      const response = await fetch(variantUrl(server, id))
      await response.arrayBuffer()
      return response.status !== 503 && response
    })
    return response.status
  })
  // The server is stopped while these wait.
  for (const id of expensive)
    for (const size of sizes) fetch(variantUrl(server, id, size)).catch(() => undefined)
  const renderers = await until('both processes are busy', () => {
    const found = renderersOf(server)
    return found.length === 2 && found
  })
  // Their pictures take longer than any request waits.
  for (const pid of renderers) signal(pid, 'SIGSTOP')
  const listing = await server.request('/api/media', { headers: { authorization: modest.authorization } })
  expect(listing.status).toBe(200)
  await store(small, modest.authorization)
  expect((await fetch(variantUrl(server, cheap))).status).toBe(200)
  for (const pid of renderers) signal(pid, 'SIGCONT')
  expect(await Promise.all(thumbnails)).toEqual(expensive.map(() => 200))
})

test('V12, V8 hostile TIFF, HEIC, videos and PDF of a bucket delay no thumbnail of that kind and no dimensions of another bucket', async () => {
  needTools('pdftoppm')
  await using server = await startServer()
  const modest = await bucketWith(server)
  const small = await quarters(40, 60).png().toBuffer()
  const square = (side: number) => ({ width: side, height: side })
  const large = await quarters(512, 512).png().toBuffer()
  /** The last one never ends. */
  const kinds = [
    ['tif', 'image/tiff', crowdedTiff(250_000), await quarters(40, 60).tiff().toBuffer()],
    [
      'heic',
      'image/heic',
      await phonePicture(large, square(512), { declared: square(4_096) }),
      await heicOf(small),
    ],
    ['flv', 'video/x-flv', await longFilm(24), await film('flv', '64x48', ['-frames:v', '1'])],
    ['pdf', 'application/pdf', endlessPdf(), pdf()],
  ] as const
  for (const [extension, type, hostile, harmless] of kinds) {
    const file = { name: `a.${extension}`, type }
    const storing = Array.from({ length: 4 }, () => upload(server, hostile, file))
    let isStoring = true
    const stored = Promise.all(storing).finally(() => {
      isStoring = false
    })
    const options = { type: 'image/png', authorization: modest.authorization }
    // While they are being measured, or wait for it.
    while (isStoring) {
      const measured = await upload(server, new Uint8Array(small), { ...options, name: 'a.png' })
      expect(measured, type).toMatchObject({ width: 40, height: 60 })
    }
    const { id } = await upload(server, new Uint8Array(harmless), { ...options, ...file })

    let ended = 0
    const thumbnails = (await stored).map(async (item) => {
      await fetch(variantUrl(server, item.id)).then((response) => response.arrayBuffer())
      ended += 1
    })
    // The server is stopped while those of the PDF are being rendered.
    for (const thumbnail of thumbnails) thumbnail.catch(() => undefined)
    expect((await fetch(variantUrl(server, id))).status, type).toBe(200)
    // In the order of arrival it would be the last one.
    if (type !== 'image/tiff') expect(ended, type).toBeLessThan(thumbnails.length)
    if (type !== 'application/pdf') await Promise.all(thumbnails)
  }
}, 600_000)
