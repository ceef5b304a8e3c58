import type { Browser, Locator } from 'playwright-core'
import sharp from 'sharp'
import { beforeAll, describe, expect, test } from 'vitest'
import { formatSize } from '../../packages/gallery/src/format.ts'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { expectAccessible } from './accessibility.ts'
import { isDrawn, picture } from './files.ts'
import { type Visit, visit } from './visit.ts'

const drawing = (size: string) =>
  Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" ${size}><circle cx="50" cy="50" r="40" fill="#0c0d10"/></svg>`,
  )
const clear = () =>
  sharp({ create: { width: 300, height: 200, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } } })
const cutOff = (bytes: Buffer) => bytes.subarray(0, Math.floor(bytes.length / 2))
/** Bytes. */
const mostShown = 64 * 1024
const markup = '<b>bold</b><script>document.title="owned"</script>\n'
const lines = (count: number) =>
  Array.from({ length: count }, (_, line) => `Möwe ${line} am Hafen`).join('\n')

let browser: Browser
let server: SharedServer
const ids = new Map<string, string>()
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  const files: readonly (readonly [string, Uint8Array, string])[] = [
    ['harbour.jpg', await picture(1, 640, 480).jpeg().toBuffer(), 'image/jpeg'],
    ['tall.svg', drawing('width="100" height="300"'), 'image/svg+xml'],
    ['wide.svg', drawing('viewBox="0 0 400 100"'), 'image/svg+xml'],
    ['clear.png', await clear().png().toBuffer(), 'image/png'],
    ['clear.webp', await clear().webp().toBuffer(), 'image/webp'],
    ['clear.gif', await clear().gif().toBuffer(), 'image/gif'],
    ['notes.txt', Buffer.from(markup), 'text/plain'],
    ['read.md', Buffer.from(`# ${markup}`), 'text/markdown'],
    ['table.csv', Buffer.from(`ship,${markup}`), 'text/csv'],
    ['data.json', Buffer.from(JSON.stringify({ ship: 'Maria' })), 'application/json'],
    ['long.txt', Buffer.from(lines(20_000)), 'text/plain'],
    ['empty.txt', Buffer.alloc(0), 'text/plain'],
    ['page.html', Buffer.from(`<!doctype html>${markup}`), 'text/html'],
    ['cut.jpg', cutOff(await picture(2, 2400, 1600).jpeg().toBuffer()), 'image/jpeg'],
    ['no-pixels.jpg', (await picture(3).jpeg().toBuffer()).subarray(0, 100), 'image/jpeg'],
  ]
  for (const [name, bytes, type] of files)
    ids.set(name, (await upload(server, new Uint8Array(bytes), { name, type })).id)
})

const hashOf = (name: string) => `#order=oldest&item=${ids.get(name)}`
const dialogOf = ({ page }: Visit, name: string) =>
  page.getByRole('dialog', { name: strings.viewer.label(name), exact: true })

async function opened(name: string): Promise<Visit> {
  const guest = await visit(browser, server, { hash: hashOf(name) })
  await guest.signIn(server.token)
  await dialogOf(guest, name).waitFor()
  return guest
}

/** Loads the page again at the URL of another file. */
async function reopen(guest: Visit, name: string): Promise<void> {
  await guest.page.goto('about:blank')
  await guest.page.goto(`${server.url}/${hashOf(name)}`)
  await dialogOf(guest, name).waitFor()
}

describe('pictures', () => {
  const large = (guest: Visit, name: string) => dialogOf(guest, name).getByRole('img', { name, exact: true })
  const ratio = (image: Locator) => image.evaluate((drawn) => drawn.clientWidth / drawn.clientHeight)

  test('an SVG has its own aspect ratio, opened first, by its URL and as a neighbour', async () => {
    await using guest = await opened('harbour.jpg')
    for (const first of ['harbour.jpg', 'tall.svg']) {
      await reopen(guest, first)
      await until('the first', () => isDrawn(large(guest, first)))
      for (const [name, shape] of [
        ['wide.svg', 4],
        ['tall.svg', 1 / 3],
        ['wide.svg', 4],
      ] as const) {
        await guest.page.goto(`${server.url}/${hashOf(name)}`)
        await until('the drawing', () => isDrawn(large(guest, name)))
        await until(`the shape of ${name}`, async () => {
          return Math.abs((await ratio(large(guest, name))) / shape - 1) < 0.03
        })
      }
      await guest.page.keyboard.press('ArrowLeft')
      await until('the drawing', () => isDrawn(large(guest, 'tall.svg')))
      await expect.poll(() => ratio(large(guest, 'tall.svg'))).toBeCloseTo(1 / 3, 1)
    }
  })

  test('dark and transparent parts are visible on a light background; a JPEG has no background', async () => {
    await using guest = await opened('harbour.jpg')
    await until('the picture', () => isDrawn(large(guest, 'harbour.jpg')))
    const ground = `getComputedStyle(document.querySelector('img[alt="harbour.jpg"]')).backgroundImage`
    await expect.poll(() => guest.page.evaluate(ground)).toBe('none')
    for (const name of ['tall.svg', 'clear.png', 'clear.webp', 'clear.gif']) {
      await reopen(guest, name)
      await until('the picture', () => isDrawn(large(guest, name)))
      await until(`light and dark in ${name}`, async () => {
        const { channels } = await sharp(await large(guest, name).screenshot()).stats()
        return (channels[0]?.max ?? 0) > 200
      })
      const outside = await guest.page.screenshot({ clip: { x: 5, y: 300, width: 60, height: 60 } })
      const { channels } = await sharp(outside).stats()
      expect(channels[0]?.max, name).toBeLessThan(40)
    }
  })
})

describe('G17 damaged pictures', () => {
  test('a picture that ends early is marked as damaged and partly shown; one that cannot be loaded is reported', async () => {
    await using guest = await opened('cut.jpg')
    const dialog = dialogOf(guest, 'cut.jpg')
    await dialog.getByText(strings.viewer.partlyShown).waitFor()
    await until('the picture', () => isDrawn(dialog.getByRole('img', { name: 'cut.jpg', exact: true })))
    await guest.page.goto(`${server.url}/${hashOf('harbour.jpg')}`)
    const whole = dialogOf(guest, 'harbour.jpg')
    await until('the whole picture', () =>
      isDrawn(whole.getByRole('img', { name: 'harbour.jpg', exact: true })),
    )
    await expect.poll(() => guest.page.getByText(strings.viewer.partlyShown).count()).toBe(0)
    await reopen(guest, 'no-pixels.jpg')
    await dialogOf(guest, 'no-pixels.jpg').getByText(strings.slides.damaged).waitFor()
  })
})

describe('texts', () => {
  test('G5 texts are shown as plain text, loaded from the page’s own origin', async () => {
    await using guest = await opened('harbour.jpg')
    for (const [name, text] of [
      ['notes.txt', markup],
      ['read.md', `# ${markup}`],
      ['table.csv', `ship,${markup}`],
      ['data.json', '{"ship":"Maria"}'],
    ] as const) {
      await reopen(guest, name)
      const shown = dialogOf(guest, name).getByRole('region', { name, exact: true })
      await shown.waitFor()
      await expect.poll(() => shown.textContent()).toBe(text)
      await expect.poll(() => shown.locator('pre > *').count(), { message: name }).toBe(0)
      expect(await guest.page.title()).not.toContain('owned')
      expect(guest.statusesOf(`${server.url}/media/${ids.get(name)}`)).toContain(206)
    }
  })

  test('B3 a long text shows its beginning, which keys and the wheel scroll', async () => {
    await using guest = await opened('long.txt')
    const dialog = dialogOf(guest, 'long.txt')
    const shown = dialog.getByRole('region', { name: 'long.txt', exact: true })
    await shown.waitFor()
    const size = Buffer.byteLength(lines(20_000))
    await dialog.getByText(strings.slides.textPreview(formatSize(mostShown), formatSize(size))).waitFor()
    const text = (await shown.textContent()) ?? ''
    expect(lines(20_000).startsWith(text)).toBe(true)
    expect(Buffer.byteLength(text)).toBeGreaterThan(mostShown - 4)
    const scrolled = () => shown.evaluate(({ scrollTop }) => scrollTop)
    // A browser that is busy with the first layout of a long text may not scroll by the first key.
    const byKey = await until('scrolled by the key', async () => {
      await shown.press('ArrowDown')
      return (await scrolled()) || null
    })
    await shown.hover()
    await until('scrolled by the wheel', async () => {
      await guest.page.mouse.wheel(0, 400)
      return (await scrolled()) > byKey
    })
    await guest.page.keyboard.press('ArrowRight')
    await dialogOf(guest, 'empty.txt').getByText(strings.slides.emptyText).waitFor()
  })

  test('G20 the encoding of a text is guessed, and can be chosen by keyboard', async () => {
    const cases = [
      // “こんにちは”, “Привет” and “Möwe”.
      ['sjis.txt', [0x82, 0xb1, 0x82, 0xf1, 0x82, 0xc9, 0x82, 0xbf, 0x82, 0xcd], 'Shift-JIS', 'こんにちは'],
      ['koi8.txt', [0xf0, 0xd2, 0xc9, 0xd7, 0xc5, 0xd4], 'KOI8-R', 'Привет'],
      ['western.txt', [0x4d, 0xf6, 0x77, 0x65], strings.slides.automatic, 'Möwe'],
    ] as const
    for (const [name, bytes] of cases)
      ids.set(name, (await upload(server, new Uint8Array(bytes), { name, type: 'text/plain' })).id)
    await using guest = await opened('sjis.txt')
    for (const [name, , encoding, text] of cases) {
      await reopen(guest, name)
      const dialog = dialogOf(guest, name)
      const slide = dialog.locator('.slide:not([inert])')
      const choice = slide.getByLabel(strings.slides.encoding)
      await choice.focus()
      await choice.selectOption(encoding)
      await expect.poll(() => slide.locator('.text-scroll pre').textContent()).toBe(text)
      // The arrow keys choose other encodings, and no other files.
      await guest.page.keyboard.press('ArrowRight')
      await expect.poll(() => dialog.count()).toBe(1)
      if (name === 'koi8.txt') await expectAccessible(guest, 'the encoding of a text')
    }
  })

  test('arrow keys step from a focused text to its neighbours; an HTML file is no text, and can be downloaded', async () => {
    await using guest = await opened('data.json')
    const reading = async (name: string) => {
      const shown = dialogOf(guest, name).getByRole('region', { name, exact: true })
      await shown.waitFor()
      await shown.focus()
    }
    await reading('data.json')
    await guest.page.keyboard.press('ArrowRight')
    await reading('long.txt')
    await guest.page.keyboard.press('ArrowRight')
    await dialogOf(guest, 'empty.txt').waitFor()
    await guest.page.keyboard.press('ArrowLeft')
    await reading('long.txt')
    await guest.page.keyboard.press('ArrowLeft')
    await dialogOf(guest, 'data.json').waitFor()

    await reopen(guest, 'page.html')
    const dialog = dialogOf(guest, 'page.html')
    await dialog.locator('.slide-card').getByRole('link', { name: strings.viewer.download }).waitFor()
    await expect.poll(() => dialog.getByRole('region', { name: 'page.html', exact: true }).count()).toBe(0)
    expect(guest.statusesOf(`${server.url}/media/${ids.get('page.html')}`)).toEqual([])
  })
})
