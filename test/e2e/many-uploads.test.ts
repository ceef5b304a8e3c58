import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Response } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startLossyProxy } from '../harness/lossy-proxy.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { type Guest, namesOf, newGuest, tray, uploadHeading } from './uploading.ts'

let browser: Browser
let server: TestServer
beforeAll(async () => {
  browser = await sharedBrowser()
  server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '2MB' })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
})

/** Writes different files, of about 1 kB unless `sizeOf` returns another size. */
async function numbered(count: number, sizeOf: (number: number) => number = (number) => 1000 + (number % 7)) {
  const directory = await temporaryDirectory()
  const paths = Array.from({ length: count }, (_, number) => join(directory.path, `${number}.txt`))
  await Promise.all(paths.map((path, number) => writeFile(path, `${number} `.padEnd(sizeOf(number), 'x'))))
  return { ...directory, paths, names: paths.map((_, number) => `${number}.txt`) }
}

/** Counts the requests of the page by kind. */
function requestsOf(guest: Guest) {
  const counts = { uploads: 0, resumable: 0, listings: 0 }
  guest.page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (pathname.startsWith('/api/uploads')) counts.resumable += 1
    else if (pathname === '/api/media') counts[request.method() === 'POST' ? 'uploads' : 'listings'] += 1
  })
  return counts
}

test('G11 2,000 small files take 20 requests and at most 50 rows, and keep their order', async () => {
  await using files = await numbered(2000)
  await using guest = await newGuest(browser, server)
  const counts = requestsOf(guest)
  const stored: Promise<string[]>[] = []
  const namesIn = async (response: Response) => {
    const { data } = (await response.json()) as { data: { url: string; filename: string }[] }
    return data.map(({ filename }) => filename)
  }
  guest.page.on('response', (response) => {
    if (response.request().method() === 'POST') stored.push(namesIn(response))
  })
  await guest.page.evaluate(`(() => {
    window.mostRows = 0
    new MutationObserver(() => {
      window.mostRows = Math.max(window.mostRows, document.querySelectorAll('.tray-row').length)
    }).observe(document.body, { childList: true, subtree: true })
  })()`)
  const start = performance.now()
  await guest.choose(strings.header.upload, files.paths)
  await uploadHeading(guest, strings.uploads.finished(2000))
  expect(counts).toMatchObject({ uploads: 20, resumable: 0 })
  // The listing is not reloaded for each file: at most once a second.
  expect(counts.listings).toBeLessThanOrEqual(2 + (performance.now() - start) / 1000)
  expect(await guest.page.evaluate('window.mostRows')).toBeLessThanOrEqual(50)
  expect((await Promise.all(stored)).flat()).toEqual(files.names)
  const { total } = await guest.client.listPage(1)
  expect(total).toBe(2000)
  const [first, last] = [await guest.client.listPage(1), await guest.client.listPage(200)]
  const named = (urls: readonly string[]) =>
    Promise.all(urls.map(async (url) => (await guest.client.describe(url)).filename))
  expect(await named(first.data)).toEqual(files.names.slice(0, 10))
  expect(await named(last.data)).toEqual(files.names.slice(-10))
})

test('G11 small and large files together keep the order in which they were chosen', async () => {
  await using files = await numbered(12, (number) => (number % 5 === 2 ? 1_200_000 : 500))
  await using guest = await newGuest(browser, server)
  const counts = requestsOf(guest)
  await guest.choose(strings.header.upload, files.paths)
  await uploadHeading(guest, strings.uploads.finished(12))
  expect(await namesOf(guest)).toEqual(files.names)
  // Files 0–1, 3–6 and 8–11 are sent in forms; 2 and 7 take two requests each.
  expect(counts).toMatchObject({ uploads: 3, resumable: 4 })
})

test('G10 one refused file of many shows the reason and can be retried; the others are stored in order', async () => {
  await using own = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '5kB' })
  await using files = await numbered(40, (number) => (number === 17 ? 6000 : 500))
  await using guest = await newGuest(browser, own)
  const counts = requestsOf(guest)
  await guest.choose(strings.header.upload, files.paths)
  await uploadHeading(guest, strings.uploads.failed(1))
  await tray(guest).getByText(strings.uploads.tooLargeFor('5 kB')).waitFor()
  expect(await namesOf(guest)).toEqual(files.names.filter((name) => name !== '17.txt'))
  // Halving finds the file without a request for each.
  expect(counts.uploads).toBeLessThanOrEqual(13)
  const again = guest.page.waitForResponse((response) => response.status() === 413)
  await guest.button(strings.uploads.retry('17.txt')).click()
  await again
  await uploadHeading(guest, strings.uploads.failed(1))
  await guest.button(strings.uploads.cancel('17.txt')).click()
  await uploadHeading(guest, strings.uploads.finished(39))
})

test('I2, G11 a form whose response is lost is stored once', async () => {
  await using files = await numbered(150)
  await using lossy = await startLossyProxy(server.url, (method, nth) => method === 'POST' && nth === 1)
  await using guest = await newGuest(browser, server, { url: lossy.url })
  await guest.choose(strings.header.upload, files.paths)
  await uploadHeading(guest, strings.uploads.finished(150))
  expect(lossy.seen.filter((method) => method.startsWith('POST'))).toEqual(['POST!', 'POST', 'POST'])
  expect(await namesOf(guest)).toEqual(files.names)
})

test('Q1, G10 in a full bucket all files that do not fit fail, without a request for each', async () => {
  await using files = await numbered(300)
  await using guest = await newGuest(browser, server)
  await runHere(server.data, 'bucket set', guest.bucket, '--max-items', '120')
  const counts = requestsOf(guest)
  await guest.choose(strings.header.upload, files.paths)
  await uploadHeading(guest, strings.uploads.failed(180))
  expect(await namesOf(guest)).toEqual(files.names.slice(0, 120))
  // Two forms, and halves of the second to find the files that fit.
  expect(counts.uploads).toBeLessThanOrEqual(16)
  await runHere(server.data, 'bucket set', guest.bucket, '--max-items', '300')
  await guest.button(strings.uploads.retryFailed).click()
  await uploadHeading(guest, strings.uploads.finished(300))
  expect(await namesOf(guest)).toEqual(files.names)
})

test('G12 all uploads are paused and resumed; a finished list copies all links', async () => {
  await using files = await numbered(250)
  await using guest = await newGuest(browser, server, {
    options: { permissions: ['clipboard-read', 'clipboard-write'] },
  })
  let open = () => {}
  const held = new Promise<void>((resolve) => {
    open = resolve
  })
  let posts = 0
  await guest.page.route('**/api/media', async (route) => {
    if (route.request().method() === 'POST') posts += 1
    if (posts === 2) await held
    await route.continue()
  })
  await guest.choose(strings.header.upload, files.paths)
  await tray(guest)
    .getByRole('heading', { name: strings.uploads.sending(100, 250) })
    .waitFor()
  await guest.button(strings.uploads.pauseAll).click()
  await uploadHeading(guest, strings.uploads.paused(150))
  open()
  await guest.button(strings.uploads.resumeAll).click()
  await uploadHeading(guest, strings.uploads.finished(250))
  expect(await namesOf(guest)).toEqual(files.names)
  await guest.button(strings.uploads.copy).click()
  await guest.page.getByText(strings.link.copied(250)).first().waitFor()
  const copied = String(await guest.page.evaluate('navigator.clipboard.readText()')).split('\n')
  const listed: string[] = []
  for await (const url of guest.client.media()) listed.push(url)
  expect(copied).toEqual(listed)
  const bytes = await (await guest.client.get(copied[249] ?? '')).text()
  expect(bytes).toBe(await readFile(files.paths[249] ?? '', 'utf8'))
})
