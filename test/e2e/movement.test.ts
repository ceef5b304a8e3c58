import type { Browser, Locator } from 'playwright-core'
import sharp from 'sharp'
import { beforeAll, describe, expect, test } from 'vitest'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { animatedPng } from '../harness/animated-png.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { recordPreview } from '../harness/pictures.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { expectAccessible } from './accessibility.ts'
import { picture } from './files.ts'
import { type Visit, visit } from './visit.ts'

await loadTexts('details')

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

describe('G47 movement', () => {
  test('V20 an animated picture keeps its movement in a size of the bucket', async () => {
    const own = await sharedServer()
    await runHere(own.data, 'bucket set', own.bucket, '--variants', 'small=300:animated')
    const { id } = await upload(own, await twoFrames('gif', 640), { name: 'moving.gif', type: 'image/gif' })
    await recordPreview(own.request, id)
    await using guest = await visit(browser, own, {
      hash: '',
      options: { reducedMotion: 'no-preference', viewport: { width: 280, height: 600 } },
    })
    const { page } = guest
    await guest.signIn(own.token)
    await page.locator('meter, .usage span').first().waitFor()
    await page.locator(`[data-item="${id}"]`).click()
    await expect.poll(() => shownSource(page)).toMatch(/variant=small$/)
    expect(await guest.button(strings.slides.play).count()).toBe(0)
  })

  test.each(['gif', 'webp', 'png', 'svg'] as const)(
    'with reduced motion, a %s stands still everywhere, also in sizes that move, until a button plays it',
    async (format) => {
      const own = await sharedServer()
      const sizes = ['--variants', 'thumb=400:animated medium=800:animated']
      await runHere(own.data, 'bucket set', own.bucket, ...sizes)
      const type = format === 'svg' ? 'image/svg+xml' : `image/${format}`
      const name = `moving.${format}`
      const { id } = await upload(own, await twoFrames(format, 300), { name, type })
      await using guest = await visit(browser, own, { hash: '', options: { ...phone } })
      const { page } = guest
      await guest.signIn(own.token)
      const tile = page.locator(`[data-item="${id}"] .still`)
      await until('the tile', async () => (await frameOf(page, tile)) === 'first')
      await untilOneMoved(page, `${own.url}/media/${id}`)
      expect(await frameOf(page, tile)).toBe('first')

      await page.locator(`[data-item="${id}"]`).click()
      const still = page.locator('.slide-still .still')
      await until('the slide', async () => (await frameOf(page, still)) === 'first')
      await expectAccessible(guest, 'a still picture')
      await page.setViewportSize(phone.viewport)
      await untilOneMoved(page, `${own.url}/media/${id}`)
      expect(await frameOf(page, still)).toBe('first')
      if (format !== 'svg') {
        await guest.button(strings.viewer.details).click()
        await guest.button(strings.details.edit).click()
        const target = page.locator('.focus-target .still')
        await until('the focus', async () => (await frameOf(page, target)) === 'first')
        await untilOneMoved(page, `${own.url}/media/${id}`)
        expect(await frameOf(page, target)).toBe('first')
        await guest.button(strings.cancel).click()
        await guest.button(strings.viewer.details).click()
      }
      await guest.button(strings.slides.play).press('Enter')
      const played = page.locator('img.pswp__img:not(.pswp__img--placeholder)')
      await until('the movement', async () => (await frameOf(page, played)) === 'later')
      expect(await guest.button(strings.slides.play).count()).toBe(0)
    },
  )

  test('with reduced motion, a picture of such a type that does not move is shown as always', async () => {
    const own = await sharedServer()
    const { id } = await upload(own, await picture(2, 300, 400).png().toBuffer(), { name: 'still.png' })
    await using guest = await visit(browser, own, { hash: `#item=${id}` })
    await guest.signIn(own.token)
    await expect.poll(() => shownSource(guest.page)).toBe(`${own.url}/media/${id}`)
    expect(await guest.button(strings.slides.play).count()).toBe(0)
  })
})

const phone = { viewport: { width: 400, height: 700 } }

const shownSource = (page: Visit['page']) =>
  page.evaluate(`document.querySelector('img.pswp__img:not(.pswp__img--placeholder)')?.currentSrc`)

/** A picture that is red for a moment, and then has another colour. */
async function twoFrames(
  format: 'gif' | 'webp' | 'png' | 'svg',
  side: number,
): Promise<Uint8Array<ArrayBuffer>> {
  if (format === 'svg')
    return new TextEncoder().encode(
      `<svg xmlns="http://www.w3.org/2000/svg" width="${side}" height="${side}"><rect width="100%" height="100%" fill="#f00"><set attributeName="fill" to="#00f" begin="0.2s"/></rect></svg>`,
    )
  if (format === 'png') return Uint8Array.from(animatedPng([200, 20, 20, 30_000], 1))
  const pixels = Buffer.alloc(side * side * 6)
  for (let at = 0; at < side * side; at += 1) {
    pixels[at * 3] = 255
    pixels[(side * side + at) * 3 + 2] = 255
  }
  const raw = { width: side, height: side * 2, channels: 3, pageHeight: side } as const
  const frames = sharp(pixels, { raw })
  const options = { delay: [200, 30_000], loop: 1 }
  return Uint8Array.from(await (format === 'gif' ? frames.gif(options) : frames.webp(options)).toBuffer())
}

/** The frame in the middle of an element, as it is on the screen. */
async function frameOf(page: Visit['page'], place: Locator): Promise<string> {
  await place.scrollIntoViewIfNeeded().catch(() => undefined)
  const box = await place.boundingBox()
  if (box === null) return 'nothing'
  const clip = { x: box.x + box.width / 2 - 2, y: box.y + box.height / 2 - 2, width: 4, height: 4 }
  const [red = 0, green = 0, blue = 0] = await sharp(await page.screenshot({ clip }))
    .raw()
    .toBuffer()
  if (red > 180 && green < 80 && blue < 80) return 'first'
  return Math.max(green, blue) > 180 && Math.min(red, green, blue) < 80 ? 'later' : `${red} ${green} ${blue}`
}

/** Waits until an `<img>` of the picture, which begins now, has moved: what has not moved by then stands still. */
async function untilOneMoved(page: Visit['page'], url: string): Promise<void> {
  await page.evaluate(`{
    const image = new Image(80, 80)
    image.id = 'moving'
    image.src = ${JSON.stringify(url)} + '?' + Math.random()
    image.style = 'position: fixed; inset: 0 auto auto 0; z-index: 9'
    ;(document.querySelector('dialog[open]') ?? document.body).append(image)
  }`)
  await until('movement', async () => (await frameOf(page, page.locator('#moving'))) === 'later')
  await page.evaluate(`document.querySelector('#moving').remove()`)
}
