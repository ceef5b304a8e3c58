import type { Browser, Locator } from 'playwright-core'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, expect, test } from 'vitest'
import { browserTest } from '../harness/browser.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { canFilm, film } from '../harness/films.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { isDrawn, picture } from './files.ts'
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

browserTest(
  'G29 a placeholder is shown until the picture is loaded, and nothing moves; in the viewer too',
  async () => {
    const own = await sharedServer()
    const { id } = await upload(own, new Uint8Array(await picture(1, 900, 600).jpeg().toBuffer()), {
      name: 'harbour.jpg',
    })
    // The first variant records the ThumbHash (V13).
    await own.request(`/media/${id}?variant=thumb`)
    await until('the ThumbHash', async () => {
      const media = await (await own.request(`/api/media/${id}`)).json()
      return Value.Parse(Type.Object({ thumbhash: Type.Union([Type.Null(), Type.String()]) }), media)
        .thumbhash
    })

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
    expect(await tile.boundingBox()).toEqual(before)
  },
)

const filmTest = canFilm ? browserTest : test.skip
filmTest(
  'G29 a video shows its duration on its tile, and its placeholder until its frame is loaded',
  async () => {
    const { id } = await upload(server, new Uint8Array(await film('mp4')), {
      name: 'ferry.mp4',
      type: 'video/mp4',
    })
    await server.request(`/media/${id}?variant=thumb`)
    await using guest = await visit(browser, server, { hash: '' })
    await guest.signIn(server.token)
    const { page } = guest
    const tile = page.locator(`[data-id="${id}"]`)
    await tile.getByText('0:05', { exact: true }).waitFor()
    await tile.locator('img[data-state=shown]').waitFor()
    const held = Promise.withResolvers<void>()
    await page.route(
      (url) => url.pathname.startsWith('/media/') && url.search !== '?variant=thumb',
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
    expect(await slide.boundingBox()).toEqual(before)
  },
)
