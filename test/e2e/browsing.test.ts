import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { browserTest } from '../harness/browser.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { freePort } from '../harness/free-port.ts'
import { startGateway } from '../harness/gateway.ts'
import { seed } from '../harness/seed.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { isDrawn, picture } from './files.ts'
import { type Visit, visit } from './visit.ts'

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  for (let item = 1; item <= 25; item++) await upload(server, `${item}`, { name: `file-${item}.txt` })
  browser = await sharedBrowser()
})

/** The names on the page, as soon as it shows `first`. */
async function namesFrom(guest: Visit, first: string): Promise<(string | null)[]> {
  await guest.files.first().getByText(first, { exact: true }).waitFor()
  await until('every name', async () => (await guest.files.getByText(strings.viewer.loading).count()) === 0)
  return await guest.files.getByText(/^file-\d+\.txt$/).allTextContents()
}
const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `file-${from + index}.txt`)

describe('paging', () => {
  browserTest('arrow keys turn pages, Back returns, and the URL links to the page', async () => {
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    const { page } = guest
    expect(await namesFrom(guest, 'file-1.txt')).toEqual(numbered(1, 10))
    await page.keyboard.press('ArrowRight')
    expect(await namesFrom(guest, 'file-11.txt')).toEqual(numbered(11, 20))
    await page.keyboard.press('ArrowRight')
    expect(await namesFrom(guest, 'file-21.txt')).toEqual(numbered(21, 25))
    await page.keyboard.press('ArrowRight')
    expect(new URL(page.url()).hash).toBe('#page=3')
    await page.keyboard.press('ArrowLeft')
    await namesFrom(guest, 'file-11.txt')
    await page.goBack()
    await namesFrom(guest, 'file-21.txt')
    await page.getByRole('link', { name: strings.pager.page(1), exact: true }).click()
    await namesFrom(guest, 'file-1.txt')
    await guest.button(strings.pager.next).click()
    await namesFrom(guest, 'file-11.txt')
  })

  browserTest(
    'a link with #page=3 opens that page after signing in; a page past the end is reported',
    async () => {
      await using guest = await visit(browser, server, { hash: '#page=3' })
      await guest.signIn(server.token)
      expect(await namesFrom(guest, 'file-21.txt')).toEqual(numbered(21, 25))
      await guest.page.goto(`${server.url}/#page=9`)
      await guest.page.getByText(strings.listing.pastEnd(9)).waitFor()
      await guest.button(strings.listing.goToLastPage).click()
      await namesFrom(guest, 'file-21.txt')
    },
  )

  browserTest('a bucket of thousands of pages shows few links and a field for the page number', async () => {
    const { token } = await seed(server, '--items', '34567', '--bucket', uniqueName('large'))
    await using guest = await visit(browser, server, { hash: '#page=1700' })
    await guest.signIn(token)
    const { page } = guest
    const shown = (numbers: string) => page.getByText(`${numbers} of 34,567 files`).waitFor()
    await shown('16,991–17,000')
    const pager = page.getByRole('navigation', { name: strings.pager.label })
    expect(await pager.getByRole('link').count()).toBeLessThan(15)
    const jump = page.getByLabel(strings.pager.jump)
    await jump.fill('3457')
    await jump.press('Enter')
    await shown('34,561–34,567')
    await jump.fill('3458')
    await jump.press('Enter')
    await page.getByText(strings.pager.range(3457)).first().waitFor()
    expect(new URL(page.url()).hash).toBe('#page=3457')
    // Arrow keys inside the field move the cursor.
    await jump.press('ArrowLeft')
    expect(new URL(page.url()).hash).toBe('#page=3457')
  })
})

browserTest(
  'G5 everything works below a path of a proxy, even if the base URL cannot be reached',
  async () => {
    const baseUrl = 'https://media.invalid/media/elsewhere'
    await using behind = await startServer({ MEDIABUCKET_BASE_URL: baseUrl })
    await using proxy = await startGateway(behind.url, '/team/photos')
    await using guest = await visit(browser, behind, { url: proxy.url })
    await guest.signIn(behind.token)
    const bytes = await picture(1).png().toBuffer()
    await guest.choose(strings.listing.chooseFiles, [
      { name: 'harbour.png', mimeType: 'image/png', buffer: bytes },
    ])
    await guest.files.getByText('harbour.png').waitFor()
    const thumbnail = guest.files.getByRole('link').locator('img')
    await until('the thumbnail', () => isDrawn(thumbnail))
    await guest.files.getByRole('link').click()
    await guest.page.getByRole('dialog').waitFor()
    await guest.button(strings.viewer.details).click()
    // Links for others use the configured base URL.
    const link = await guest.page.getByRole('textbox', { name: strings.details.link }).inputValue()
    expect(link).toMatch(new RegExp(`^${baseUrl}/media/[0-9a-z]+\\.png$`))
    await guest.page.keyboard.press('Escape')
    expect(guest.requests).toContain(`${proxy.url}/api/media`)
    // A large file is a resumable upload: the client sends its chunks to the URL in the `Location` of a response.
    const film = { name: 'film.bin', mimeType: 'video/mp4', buffer: Buffer.alloc(1_200_000) }
    await guest.choose(strings.header.upload, [film])
    await guest.files.getByText('film.bin').waitFor()
    expect(guest.requests.some((url) => url.startsWith(`${proxy.url}/api/uploads/`))).toBe(true)
    expect(guest.requests.filter((url) => !url.startsWith(`${proxy.url}/`))).toEqual([])
  },
)

browserTest('the page reports a lost connection and continues when the server is back', async () => {
  await using first = await startServer({ MEDIABUCKET_PORT: `${await freePort()}` })
  for (let item = 1; item <= 11; item++) await upload(first, `${item}`, { name: `file-${item}.txt` })
  await using guest = await visit(browser, first)
  await guest.signIn(first.token)
  await namesFrom(guest, 'file-1.txt')
  await first.stop()
  await guest.page.keyboard.press('ArrowRight')
  await guest.page.getByText(strings.connection.lost).first().waitFor()
  const { port } = new URL(first.url)
  await using _again = await startServer({ MEDIABUCKET_PORT: port }, first.data)
  await namesFrom(guest, 'file-11.txt')
  await guest.page.getByText(strings.connection.lost).waitFor({ state: 'detached' })
})
