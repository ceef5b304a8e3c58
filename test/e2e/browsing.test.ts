import type { Browser } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { mediaIdOf } from '../../packages/client/src/urls.ts'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { freePort } from '../harness/free-port.ts'
import { startGateway } from '../harness/gateway.ts'
import { seed } from '../harness/seed.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { picture } from './files.ts'
import { type Visit, visit } from './visit.ts'

await loadTexts('details')

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
})

/** The ids of the files whose upper edge is on the screen, below the header. */
const onScreen = (guest: Visit) =>
  guest.files.evaluateAll((files) =>
    files.flatMap((file) => {
      const { top } = file.getBoundingClientRect()
      return top > 60 && top < 720 ? [file.getAttribute('data-id')] : []
    }),
  )

test('G18 #page=N opens the bucket at the first file of that page, and at its end if there is no such page', async () => {
  const { token } = await seed(server, '--items', '3457', '--bucket', uniqueName('large'))
  const client = createClient({ url: server.url, token })
  const idsOf = async (page: number) => (await client.listPage(page)).data.map(mediaIdOf)
  await using guest = await visit(browser, server, { hash: '#page=170' })
  await guest.signIn(token)
  const { page } = guest
  const opensAt = async (number: number) => {
    const [first] = await idsOf(number)
    await until(`page ${number}`, async () => (await onScreen(guest))[0] === first)
    await expect.poll(() => new URL(page.url()).hash).toBe('#order=oldest')
  }
  await opensAt(170)
  await page.getByText(strings.files(3_457), { exact: true }).waitFor()
  await opensAt(170)
  await page.goto(`${server.url}/#page=340`)
  await opensAt(340)
  await page.goto(`${server.url}/#page=2`)
  await opensAt(2)
  await page.goto(`${server.url}/#page=347`)
  const last = (await idsOf(346)).at(-1)
  await until('the last file', async () => (await onScreen(guest)).at(-1) === last)
  await page.goto(`${server.url}/#page=two`)
  await opensAt(1)
})

test('G5 everything works below a path of a proxy, even if the base URL cannot be reached', async () => {
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
  await guest.files.getByRole('link').locator('[data-state=shown]').waitFor()
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
})

test('the page reports a lost connection and continues when the server is back', async () => {
  await using first = await startServer({ MEDIABUCKET_PORT: `${await freePort()}` })
  for (let item = 1; item <= 11; item++) await upload(first, `${item}`, { name: `file-${item}.txt` })
  await using guest = await visit(browser, first)
  await guest.signIn(first.token)
  await guest.files.first().getByText('file-1.txt', { exact: true }).waitFor()
  await first.stop()
  await guest.button(strings.timeline.oldestFirst).click()
  await guest.page.getByText(strings.connection.lost).first().waitFor()
  const { port } = new URL(first.url)
  await using _again = await startServer({ MEDIABUCKET_PORT: port }, first.data)
  await guest.files.first().getByText('file-11.txt', { exact: true }).waitFor()
  await guest.page.getByText(strings.connection.lost).waitFor({ state: 'detached' })
})
