import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import sharp from 'sharp'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { root } from '../architecture/sources.ts'
import { clip, isDrawn, pdf, tone, writeFiles } from '../e2e/files.ts'
import { launchBrowser, listenForFileChoosers } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { startGateway } from '../harness/gateway.ts'
import { startServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { scenery } from './scenery.ts'

// `npm run docs:screenshots` writes screenshots of the gallery's main states to docs/images, as WebP.

const images = join(root, 'docs/images')
const desk = { width: 1280, height: 800 }
const phone: BrowserContextOptions = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }

// Those of the list of uploads are loaded on demand.
await loadTexts('uploads')
mkdirSync(images, { recursive: true })
await using server = await startServer()
await using way = await startGateway(server.url)
await using browser = await launchBrowser()
const { token, authorization } = await makeToken(server, '--bucket', 'summer-festival')
await runHere(server.data, 'bucket set', 'summer-festival', '--max-bytes', '250MB')

const pictures = await scenery()
/** Pads a file to a realistic size; players ignore the padding. */
const filled = (bytes: Uint8Array, size: number) => Buffer.concat([bytes, Buffer.alloc(size)])
const others: readonly (readonly [string, Uint8Array, string])[] = [
  ['Aftermovie.webm', filled(await clip(), 14_200_000), 'video/webm'],
  ['Programme.pdf', filled(pdf(), 183_000), 'application/pdf'],
  ['Jingle.wav', tone(), 'audio/wav'],
]
const photos = [...pictures].map(([name, bytes]): (typeof others)[number] => [name, bytes, ''])
const stored = photos.slice(0, 24).concat(others.slice(2))
stored.splice(4, 0, ...others.slice(0, 1))
stored.splice(8, 0, ...others.slice(1, 2))
for (const [name, bytes, type] of stored) {
  const { variants } = await upload(server, new Uint8Array(bytes), { name, type, authorization })
  // Rendered, so that no screenshot shows a placeholder.
  if (variants?.['thumb']) await fetch(variants['thumb'])
}

async function open(options: BrowserContextOptions = {}, hash = ''): Promise<Page> {
  const context = await browser.newContext({
    viewport: desk,
    deviceScaleFactor: 1.5,
    reducedMotion: 'reduce',
    ...options,
  })
  const page = await context.newPage()
  listenForFileChoosers(page)
  await page.goto(`${way.url}/${hash}`)
  return page
}

async function signIn(page: Page, as = token): Promise<void> {
  await page.getByLabel(strings.signIn.token, { exact: true }).fill(as)
  await page.getByRole('button', { name: strings.signIn.submit }).click()
  await page.getByRole('button', { name: strings.header.signOut }).waitFor()
}

/** Waits for all visible pictures, then saves a screenshot. */
async function take(page: Page, name: string): Promise<void> {
  // Move the pointer away, so that nothing is hovered.
  await page.mouse.move(2, 2)
  await until('the names', async () => (await page.getByText(strings.viewer.loading).count()) === 0)
  await until('the pictures', () =>
    page.locator('img:visible').evaluateAll((all) => all.every(({ naturalWidth }) => naturalWidth > 0)),
  )
  await until(
    'the thumbnails',
    async () =>
      (await page.evaluate(`[...document.querySelectorAll('.timeline .tile-picture:not(.kind)')].every((tile) =>
      tile.getBoundingClientRect().top > innerHeight || tile.querySelector('[data-state=shown]') !== null)`)) ===
      true,
  )
  const png = await page.screenshot()
  const { size } = await sharp(png)
    .webp({ quality: 84, effort: 6 })
    .toFile(join(images, `${name}.webp`))
  console.log(`${name}.webp ${Math.round(size / 1000)} kB`)
}

const button = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).filter({ visible: true })

{
  const page = await open()
  await take(page, 'sign-in')
  const empty = await makeToken(server, '--bucket', 'new-bucket')
  await signIn(page, empty.token)
  await page.getByText(strings.listing.empty).waitFor()
  await take(page, 'empty')
}
for (const colorScheme of ['light', 'dark'] as const) {
  const page = await open({ colorScheme })
  await signIn(page)
  await page.getByText('Programme.pdf').waitFor()
  await take(page, `files-${colorScheme}`)
}
{
  const page = await open()
  await signIn(page)
  const list = page.locator('.timeline').getByRole('checkbox')
  await list.nth(9).waitFor()
  for (const place of [0, 2, 3]) await list.nth(place).click()
  await take(page, 'selecting')
}
{
  const page = await open({ colorScheme: 'dark' })
  await signIn(page)
  await page.getByText('Poster, rocket.png').click()
  await button(page, strings.viewer.details).click()
  await page.getByText(strings.viewer.loading).waitFor({ state: 'detached' })
  await take(page, 'viewer')
}
{
  const page = await open({ ...phone, deviceScaleFactor: 2 })
  await signIn(page)
  await page.getByText('Shoreline.jpg').waitFor()
  await take(page, 'phone')
  await page.getByText('Poster, rocket (upright).png').click()
  await page.getByRole('dialog').waitFor()
  await until('the picture', () => isDrawn(page.getByRole('dialog').getByRole('img').first(), 1_000))
  await take(page, 'phone-viewer')
}
{
  const page = await open()
  await signIn(page)
  const film = (size: number) => Buffer.alloc(size, size)
  await using files = await writeFiles(
    new Map([
      ...[...pictures].slice(24, 26),
      ['Main stage, first night.mp4', film(48_300_000)],
      ['Drone flight.mp4', film(21_700_000)],
      ['Interview with the band.mp4', film(33_900_000)],
      ['Sound check.mp4', film(12_400_000)],
    ]),
  )
  way.holdAfter(way.passed() + 30_000_000)
  const [chooser] = await Promise.all([
    page.waitForEvent('filechooser'),
    button(page, strings.header.upload).click(),
  ])
  await chooser.setFiles(files.paths)
  await page
    .getByRole('region', { name: strings.uploads.label })
    .getByText(strings.uploads.done)
    .first()
    .waitFor()
  await take(page, 'uploading')
}
