import type { Browser, Locator } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { film } from '../harness/films.ts'
import { recordPreview, renderCount } from '../harness/pictures.ts'
import { childrenOf, commandOf, signal } from '../harness/processes.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItems } from '../harness/wire.ts'
import { isDrawn, picture } from './files.ts'
import { uploadHeading } from './uploading.ts'
import { visit } from './visit.ts'

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
})

/** Whether a canvas is drawn: whether it has a pixel that is not transparent. */
const isPainted = (canvas: Locator): Promise<boolean> =>
  canvas.evaluate((element) =>
    element
      .getContext('2d')
      ?.getImageData(0, 0, element.width, element.height)
      .data.some((value: number) => value > 0),
  )

test('G29 a placeholder is shown until the picture is loaded, and nothing moves; in the viewer too', async () => {
  const own = await sharedServer()
  const { id } = await upload(own, new Uint8Array(await picture(1, 900, 600).jpeg().toBuffer()), {
    name: 'harbour.jpg',
  })
  await recordPreview(own.request, id)

  await using guest = await visit(browser, own, { hash: '' })
  const { page } = guest
  const held = Promise.withResolvers<void>()
  await page.route('**/media/**', async (route) => {
    await held.promise
    await route.continue()
  })
  await guest.signIn(own.token)
  const tile = page.locator(`.timeline [data-id="${id}"]`)
  await until('the placeholder', () => isPainted(tile.locator('canvas')))
  const before = await tile.boundingBox()
  await tile.locator('a').click()
  const placeholder = page.getByRole('dialog').locator('.pswp__img--placeholder canvas')
  await until('the placeholder of the viewer', () => isPainted(placeholder))
  await page.keyboard.press('Escape')
  held.resolve()
  await tile.locator('img[data-state=shown]').waitFor()
  await tile.locator('canvas').waitFor({ state: 'detached' })
  await expect.poll(() => tile.boundingBox()).toEqual(before)
})

test('V16, G29 the first visit after an upload shows a placeholder for each picture, then its thumbnail, and no empty tile', async () => {
  await using fresh = await startServer({ MEDIABUCKET_RENDER_AHEAD: 'on' })
  const ids: string[] = []
  for (let seed = 1; seed <= 6; seed += 1) {
    const bytes = new Uint8Array(await picture(seed, 600, 400).jpeg().toBuffer())
    ids.push((await upload(fresh, bytes, { name: `${seed}.jpg`, type: 'image/jpeg' })).id)
  }
  const bytes = new Uint8Array(await film('mp4'))
  ids.push((await upload(fresh, bytes, { name: 'ferry.mp4', type: 'video/mp4' })).id)
  await until('they are rendered ahead', async () => {
    const { data } = await readItems(await fresh.request('/api/items'))
    return data.every(({ thumbhash }) => thumbhash !== null)
  })

  await using guest = await visit(browser, fresh, { hash: '' })
  const { page } = guest
  const held = Promise.withResolvers<void>()
  await page.route('**/media/**', async (route) => {
    await held.promise
    await route.continue()
  })
  await guest.signIn(fresh.token)
  for (const id of ids)
    await until('the placeholder', () => isPainted(page.locator(`[data-id="${id}"] canvas`)))
  await expect.poll(() => page.locator('.tile .skeleton').count()).toBe(0)
  held.resolve()
  for (const id of ids) await page.locator(`[data-id="${id}"] img[data-state=shown]`).waitFor()
  expect(await renderCount(fresh)).toBe(ids.length)
})

test('G34 over HTTP/1.1, an upload completes while all thumbnails wait for their renders, also after many were opened', async () => {
  await using own = await startServer({
    MEDIABUCKET_VARIANT_PROCESSES: '1',
    // The stopped process is not replaced.
    MEDIABUCKET_VARIANT_TIMEOUT: '10m',
  })
  const ids: string[] = []
  const large = await picture(1, 2000, 1500).jpeg().toBuffer()
  for (let number = 1; number <= 10; number += 1) {
    // Different files: decoders ignore what follows the picture.
    const bytes = new Uint8Array([...large, number])
    ids.push((await upload(own, bytes, { name: `${number}.jpg`, type: 'image/jpeg' })).id)
  }
  // Starts the process that renders; not the one that has read the dimensions, whose niceness is 0.
  await own.request(`/media/${ids[0]}?variant=thumb`)
  const renderers = childrenOf(own.process.pid ?? 0).filter((pid) =>
    /picture-worker\.\w+\0[1-9]/.test(commandOf(pid)),
  )
  for (const pid of renderers) process.kill(pid, 'SIGSTOP')

  await using guest = await visit(browser, own)
  const { page } = guest
  /** The requests for bytes that wait for the server. */
  const waiting = new Set<unknown>()
  page.on('request', (request) => {
    if (request.url().includes('/media/')) waiting.add(request)
  })
  page.on('requestfinished', (request) => waiting.delete(request))
  page.on('requestfailed', (request) => waiting.delete(request))
  await guest.signIn(own.token)
  const thumbnails = () => new Set(guest.requests.filter((url) => url.includes('variant=thumb')))
  await until('requests for all thumbnails', () => thumbnails().size === ids.length)
  const file = (name: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(name) })
  await guest.choose(strings.header.upload, file('first.txt'))
  await uploadHeading(guest, strings.uploads.finished(1))
  // None of them has failed, so the upload has waited for none.
  await expect.poll(() => new Set([...thumbnails()].flatMap(guest.statusesOf))).toEqual(new Set([202]))

  await page.locator(`[data-item="${ids[1]}"]`).click()
  const dialog = page.getByRole('dialog')
  for (let at = 1; at < 7; at += 1) {
    await dialog.locator('.pswp__img--placeholder, .pswp__img').first().waitFor()
    await page.keyboard.press('ArrowRight')
    await until('the step', () => page.url().includes(`item=${ids[at + 1]}`))
    await until('few requests wait', () => waiting.size <= 3)
  }
  await page.keyboard.press('Escape')
  await guest.choose(strings.header.upload, file('second.txt'))
  await uploadHeading(guest, strings.uploads.finished(2))
  expect(await renderCount(own)).toBe(1)
  for (const pid of renderers) signal(pid, 'SIGCONT')
  await page.locator(`[data-id="${ids[9]}"] img[data-state=shown]`).waitFor()
})

test('G29 a video shows its duration on its tile, and its placeholder until its frame is loaded', async () => {
  const { id } = await upload(server, new Uint8Array(await film('mp4')), {
    name: 'ferry.mp4',
    type: 'video/mp4',
  })
  await recordPreview(server.request, id)
  await using guest = await visit(browser, server, { hash: '' })
  await guest.signIn(server.token)
  const { page } = guest
  const tile = page.locator(`[data-id="${id}"]`)
  await tile.getByText('0:05', { exact: true }).waitFor()
  await tile.locator('img[data-state=shown]').waitFor()
  const held = Promise.withResolvers<void>()
  await page.route(
    (url) => url.pathname.startsWith('/media/') && url.search !== '?variant=thumb&wait=0',
    async (route) => {
      await held.promise
      await route.continue()
    },
  )
  await tile.locator('a').click()
  const slide = page.getByRole('dialog').locator('.slide-player')
  await until('the placeholder', () => isPainted(slide.locator('canvas')))
  await until('the thumbnail', () => isDrawn(slide.locator('img')))
  const before = await slide.boundingBox()
  held.resolve()
  await slide.locator('canvas').waitFor({ state: 'detached' })
  await expect.poll(() => slide.boundingBox()).toEqual(before)
})

test('G29 the row of a video shows its duration beside its name, and nothing else moves, on narrow and wide screens', async () => {
  const own = await sharedServer()
  const bytes = new Uint8Array(await film('mp4'))
  const { id } = await upload(own, bytes, { name: 'ferry at noon.mp4', type: 'video/mp4' })
  const other = await upload(own, new Uint8Array(await picture(1).jpeg().toBuffer()), { name: 'a.jpg' })
  await own.request(`/media/${id}?variant=thumb`)
  await using guest = await visit(browser, own, { hash: '#view=list' })
  const { page } = guest
  await guest.signIn(own.token)
  const video = page.locator(`[data-id="${id}"]`)
  const row = page.locator(`[data-id="${other.id}"]`)
  await video.getByText('0:05', { exact: true }).waitFor()
  const edgesOf = async (tile: Locator) => {
    const [time, size] = [tile.locator('.tile-caption time'), tile.locator('.tile-size')]
    const boxes = [await time.boundingBox(), await size.boundingBox(), await tile.boundingBox()]
    const [timeBox, sizeBox, tileBox] = boxes.map((box) => box ?? expect.unreachable())
    return {
      time: timeBox?.x ?? Number.NaN,
      size: (sizeBox?.x ?? 0) + (sizeBox?.width ?? 0),
      top: (sizeBox?.y ?? 0) - (tileBox?.y ?? 0),
    }
  }
  for (const width of [375, 1440]) {
    await page.setViewportSize({ width, height: 700 })
    const differences = async () => {
      const [first, second] = [await edgesOf(video), await edgesOf(row)]
      return [first.time - second.time, first.size - second.size, first.top - second.top]
    }
    await expect.poll(differences).toEqual([0, 0, 0])
    const overlap = async () => {
      const duration = await video.locator('.tile-duration').boundingBox()
      const end = await video.locator('.middle-name-end').boundingBox()
      return (end?.x ?? 0) + (end?.width ?? 0) - (duration?.x ?? 0)
    }
    await expect.poll(overlap).toBeLessThanOrEqual(0)
  }
})
