import type { Browser } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { movedClock } from '../harness/moved-clock.ts'
import { startServer } from '../harness/server.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { clip, isDrawn, pdf, picture } from './files.ts'
import { visit } from './visit.ts'

await loadTexts('details')

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

test('G23, H6 the viewer renews the signed URLs of pictures, texts, PDF and video that expired while it was open', async () => {
  needTools('faketime')
  await using clock = await movedClock()
  await using server = await startServer(clock.settings)
  const shared = { ...server, bucket: 'default' }
  const pictures = await Promise.all(
    [1, 2, 3, 4].map(
      async (seed) => [`${seed}.png`, await picture(seed).png().toBuffer(), 'image/png'] as const,
    ),
  )
  const files = [
    ...pictures,
    ['notes.txt', Buffer.from('Notes of the harbour.\n'), 'text/plain'],
    ['report.pdf', pdf(), 'application/pdf'],
    ['clip.webm', await clip(), 'video/webm'],
  ] as const
  for (const [name, bytes, type] of files) {
    const { url } = await upload(shared, new Uint8Array(bytes), { name, type })
    // The moved clock would end a render in progress by its timeout.
    if (type !== 'text/plain') expect((await fetch(`${url}?variant=medium`)).status).toBe(200)
  }
  await server.command('bucket', 'set', 'default', '--private', 'on')

  await using guest = await visit(browser, shared)
  const { page } = guest
  // Otherwise the browser could show what it has loaded before.
  await (await guest.context.newCDPSession(page)).send('Network.setCacheDisabled', { cacheDisabled: true })
  await guest.signIn(server.token)
  await guest.files.getByRole('link', { name: '1.png' }).click()
  const dialog = (name: string) => page.getByRole('dialog', { name: strings.viewer.label(name), exact: true })
  await until('the first picture', () => isDrawn(dialog('1.png').getByRole('img', { name: '1.png' })))

  await clock.move('+31m')
  const signed = guest.requests.filter((url) => url.includes('signature='))
  await until('the expiry of all signed URLs', async () => {
    const responses = await Promise.all(signed.map((url) => fetch(url)))
    return responses.every(({ status }) => status === 403)
  })
  for (const name of ['2.png', '3.png', '4.png']) {
    await page.keyboard.press('ArrowRight')
    await until(name, () => isDrawn(dialog(name).getByRole('img', { name })))
  }
  await page.keyboard.press('ArrowRight')
  await dialog('notes.txt').getByText('Notes of the harbour.').filter({ visible: true }).waitFor()
  await page.keyboard.press('ArrowRight')
  await until('the first page', () => isDrawn(dialog('report.pdf').getByAltText(strings.slides.firstPage)))
  const tab = guest.context.waitForEvent('page')
  await dialog('report.pdf').getByRole('link', { name: strings.slides.openPdf }).click()
  await (await tab).close()
  await page.keyboard.press('ArrowRight')
  await until('the length of the video', () =>
    dialog('clip.webm')
      .locator('video')
      .evaluate(({ duration }) => Math.round(duration) === 6),
  )
  expect(page.url()).not.toMatch(/signature=/)
})
