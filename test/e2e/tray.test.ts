import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Browser, Locator } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { freePort } from '../harness/free-port.ts'
import { startGateway } from '../harness/gateway.ts'
import { startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readPage } from '../harness/wire.ts'
import { violations } from './accessibility.ts'
import { drop } from './drop.ts'
import { writeFiles } from './files.ts'
import { tray, uploadHeading } from './uploading.ts'
import { visit } from './visit.ts'

/** Resolves when the page has its store of unfinished uploads: a database opens for one request after another. */
const untilStoreOpen = `new Promise((resolve, reject) => {
  const request = indexedDB.open('mediabucket-uploads', 1)
  request.onsuccess = () => resolve(request.result.close())
  request.onerror = () => reject(request.error)
})`

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

const file = (name: string, size: number) => ({
  name,
  mimeType: 'application/octet-stream',
  buffer: randomBytes(size),
})

test('files in progress are listed before finished files, and visible', async () => {
  const server = await sharedServer()
  await using way = await startGateway(server.url)
  await using guest = await visit(browser, server, { url: way.url })
  await guest.signIn(server.token)
  const small = Array.from({ length: 14 }, (_, index) => file(`small-${index}.bin`, 10 + index))
  await guest.choose(strings.header.upload, small)
  await uploadHeading(guest, strings.uploads.finished(14))
  way.holdAfter(way.passed() + 1_000_000)
  await guest.choose(strings.header.upload, [file('film.bin', 4_000_000)])
  const pause = guest.button(strings.uploads.pause('film.bin'))
  await pause.waitFor()
  await until('first', async () => {
    const first = tray(guest).getByRole('listitem').first()
    return await first.getByText('film.bin').isVisible()
  })
  const bottomOf = async (what: Locator) => {
    const { y, height } = (await what.boundingBox()) ?? { y: Number.NaN, height: 0 }
    return y + height
  }
  await expect.poll(async () => (await bottomOf(pause)) - (await bottomOf(tray(guest)))).toBeLessThan(0)
  way.open()
  await uploadHeading(guest, strings.uploads.finished(15))
})

test('Q1 a file larger than the limit of the bucket has no retry button', async () => {
  const server = await sharedServer()
  await runHere(server.data, 'bucket set', server.bucket, '--max-bytes', '6000')
  await using guest = await visit(browser, server)
  await guest.signIn(server.token)
  await guest.choose(strings.header.upload, [file('first.bin', 4000)])
  await uploadHeading(guest, strings.uploads.finished(1))
  await guest.choose(strings.header.upload, [file('second.bin', 5000), file('never.bin', 7000)])
  await uploadHeading(guest, strings.uploads.failed(2))
  await guest.button(strings.uploads.retry('second.bin')).waitFor()
  await guest.button(strings.uploads.retry('never.bin')).waitFor({ state: 'detached' })
})

test('A3 with a read-only token, files dragged over the page are refused with the reason', async () => {
  const server = await sharedServer()
  const { token } = await makeToken(server, '--bucket', server.bucket, '--scope', 'media:read')
  await using files = await writeFiles(new Map([['a.txt', Buffer.from('a')]]))
  await using guest = await visit(browser, server)
  await guest.signIn(token)
  await drop(guest.page, files.paths, async () => {
    await guest.page.getByText(strings.adding.dropNotAllowed, { exact: true }).waitFor()
    await expect.poll(() => guest.page.getByText(strings.adding.drop, { exact: true }).count()).toBe(0)
  })
  await guest.page.getByText(strings.adding.notAllowed).first().waitFor()
})

test('G13 on screens of any width, the list, a notice and the selection bar cover no button of each other', async () => {
  const server = await sharedServer()
  for (let number = 0; number < 12; number++)
    await upload(server, `${number}`, { name: `file-${number}.txt` })
  await using guest = await visit(browser, server)
  await guest.signIn(server.token)
  const { page } = guest
  await page.getByLabel(strings.selection.select('file-0.txt'), { exact: true }).click()
  await page.getByLabel(strings.selection.select('file-1.txt'), { exact: true }).click()
  let open = () => {}
  const held = new Promise<void>((resolve) => {
    open = resolve
  })
  await page.route('**/api/media', async (route) => {
    if (route.request().method() === 'POST') await held
    await route.continue()
  })
  await guest.choose(
    strings.header.upload,
    Array.from({ length: 30 }, (_, index) => file(`small-${index}.bin`, 10 + index)),
  )
  await uploadHeading(guest, strings.uploads.sending(0, 30))
  const overlaps = `(() => {
      const parts = [...document.querySelectorAll('.header, .dock .tray, .dock .notice, .selection-bar')]
      const boxes = parts.map((part) => [part.className, part.getBoundingClientRect()])
      const over = boxes.flatMap(([name, a], index) => boxes.slice(index + 1).flatMap(([other, b]) =>
        a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5
          ? [name + ' covers ' + other] : []))
      const hidden = parts.flatMap((part) => [...part.querySelectorAll('button, a')]).filter((button) => {
        const { left, right, top, bottom, width } = button.getBoundingClientRect()
        const rows = button.closest('.tray-rows')
        // The submit button for the Enter key is off screen.
        if (width < 8 || rows) return false
        const found = document.elementFromPoint((left + right) / 2, (top + bottom) / 2)
        return !button.contains(found)
      }).map((button) => 'hidden: ' + (button.getAttribute('aria-label') ?? button.textContent))
      return { parts: boxes.length, faults: [...over, ...hidden] }
    })()`
  for (const width of [375, 720, 1024, 1280, 1440]) {
    await page.setViewportSize({ width, height: 800 })
    await guest.button(strings.selected.copy).click()
    await page.locator('.dock .notice').first().waitFor()
    const message = `${width} pixels`
    await expect.poll(() => page.evaluate(overlaps), { message }).toEqual({ parts: 4, faults: [] })
    await expect.poll(() => violations(page), { message }).toEqual([])
  }
  open()
  await uploadHeading(guest, strings.uploads.finished(30))
})

test('G14 leaving the page asks for confirmation during uploads only', async () => {
  const server = await sharedServer()
  await using guest = await visit(browser, server)
  await guest.signIn(server.token)
  const { page } = guest
  const asked: string[] = []
  page.on('dialog', async (dialog) => {
    asked.push(dialog.type())
    await dialog.dismiss()
  })
  let open = () => {}
  const held = new Promise<void>((resolve) => {
    open = resolve
  })
  await page.route('**/api/media', async (route) => {
    if (route.request().method() === 'POST') await held
    // Its page may be closed.
    await route.continue().catch(() => undefined)
  })
  await guest.choose(strings.header.upload, [file('a.bin', 10), file('b.bin', 10)])
  await uploadHeading(guest, strings.uploads.sending(0, 2))
  const leave = page.goto('about:blank').catch(() => 'stayed')
  await until('a question', () => asked.length > 0)
  expect([asked, await leave]).toEqual([['beforeunload'], 'stayed'])
  // The browser stored them when it asked, so now nothing is lost.
  await tray(guest).getByText(strings.uploads.continuesLater).waitFor()
  await page.goto('about:blank')
  open()
  await page.goto(server.url)
  await uploadHeading(guest, strings.uploads.finished(2))
  await page.reload()
  await page.getByText('a.bin').first().waitFor()
  expect(asked).toEqual(['beforeunload'])
})

test('G14 the page must stay open while folders are read, whatever is stored', async () => {
  const server = await sharedServer()
  await using guest = await visit(browser, server)
  await guest.signIn(server.token)
  const { page } = guest
  await using files = await writeFiles(new Map([['folder/a.bin', randomBytes(10)]]))
  // The upload does not begin, and the folder is never read to its end.
  await page.route('**/api/media', async (route) => {
    if (route.request().method() === 'GET') await route.continue()
  })
  await page.evaluate(`{
    const { webkitGetAsEntry } = DataTransferItem.prototype
    DataTransferItem.prototype.webkitGetAsEntry = function () {
      const entry = webkitGetAsEntry.call(this)
      entry.createReader = () => ({ readEntries() {} })
      return entry
    }
  }`)
  await guest.choose(strings.header.upload, [file('b.bin', 10)])
  await tray(guest).getByText(strings.uploads.continuesLater).waitFor()
  await drop(page, [join(files.directory, 'folder')])
  await tray(guest).getByText(strings.uploads.keepOpen).waitFor()
  const asked = page.waitForEvent('dialog')
  const leaving = page.goto('about:blank').catch(() => 'stayed')
  await (await asked).dismiss()
  expect(await leaving).toBe('stayed')
})

test('G14 the page may be closed only if the browser has stored the unfinished uploads', async () => {
  const server = await sharedServer()
  await using guest = await visit(browser, server, { movesClock: true })
  await guest.signIn(server.token)
  const { page } = guest
  await page.evaluate(`{
    window.puts = 0
    IDBObjectStore.prototype.put = () => {
      window.puts++
      throw new DOMException('full', 'QuotaExceededError')
    }
  }`)
  await page.route('**/api/media', async (route) => {
    if (route.request().method() === 'GET') await route.continue()
  })
  await guest.choose(strings.header.upload, [file('a.bin', 10), file('b.bin', 10)])
  await until('an attempt to store the upload', async () => {
    await page.clock.runFor(1000)
    return await page.evaluate('window.puts > 0')
  })
  await page.clock.runFor(1000)
  await tray(guest).getByText(strings.uploads.keepOpen).waitFor()
  await expect.poll(() => tray(guest).getByText(strings.uploads.continuesLater).count()).toBe(0)
})

test('G14 the page should stay open for a file that is too large for the browser to store', async () => {
  const server = await sharedServer()
  await using guest = await visit(browser, server, { movesClock: true })
  await guest.signIn(server.token)
  const { page } = guest
  await using files = await writeFiles(new Map([['film.bin', randomBytes(10)]]))
  await page.addInitScript(
    `Object.defineProperty(Blob.prototype, 'size', { get: () => ${512 * 2 ** 20 + 1} }); window.puts = []
    const put = IDBObjectStore.prototype.put
    IDBObjectStore.prototype.put = function (record) {
      const request = put.call(this, record)
      request.transaction.addEventListener('complete', () => window.puts.push(record.file))
      return request
    }`,
  )
  await page.reload()
  // The upload does not begin.
  await page.route('**/api/uploads', () => undefined)
  await guest.choose(strings.header.upload, files.paths)
  await until('a record without the file', async () => {
    await page.clock.runFor(1000)
    return (await page.evaluate('JSON.stringify(window.puts)')) === '[null]'
  })
  await page.clock.runFor(1000)
  await tray(guest).getByText(strings.uploads.keepOpen).waitFor()
  await expect.poll(() => tray(guest).getByText(strings.uploads.continuesLater).count()).toBe(0)

  page.on('dialog', (dialog) => dialog.accept())
  await page.reload()
  await page.clock.runFor(1000)
  await uploadHeading(guest, strings.uploads.toChooseAgain(1))
  await guest.choose(strings.header.upload, files.paths)
  await until('it continues', async () => {
    await page.clock.runFor(1000)
    return await tray(guest).getByText(strings.uploads.keepOpen).isVisible()
  })
  await page.clock.runFor(5000)
  await expect.poll(() => tray(guest).getByText(strings.uploads.continuesLater).count()).toBe(0)
})

for (const [when, reachesServer] of [
  ['before the server has received them', false],
  ['after the server has stored them', true],
] as const)
  test(`I2, G14 small files are stored once when the page is left ${when}`, async () => {
    const server = await sharedServer()
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    const { page } = guest
    let hasLeft = false
    let stored = !reachesServer
    page.on('dialog', async (dialog) => {
      hasLeft = true
      await dialog.accept()
    })
    // The first visit receives no response.
    await page.route('**/api/media', async (route) => {
      if (hasLeft || route.request().method() === 'GET') await route.continue()
      else if (reachesServer) stored = (await route.fetch()).status() === 201
    })
    await guest.choose(strings.header.upload, [file('a.bin', 10), file('b.bin', 0), file('c.bin', 10)])
    await uploadHeading(guest, strings.uploads.sending(0, 3))
    await page.evaluate(untilStoreOpen)
    await until('the first visit has sent its request', () => stored)
    await page.reload()
    await uploadHeading(guest, strings.uploads.finished(3))
    await expect
      .poll(async () => (await guest.files.locator('.tile-name').allTextContents()).toSorted())
      .toEqual(['a.bin', 'b.bin', 'c.bin'])
  })

test('G12 a finished list closes by itself, but not while the pointer or the focus is in it', async () => {
  const server = await sharedServer()
  await using guest = await visit(browser, server, { movesClock: true })
  await guest.signIn(server.token)
  const { page } = guest
  await guest.choose(strings.header.upload, [file('a.bin', 10)])
  await until('the end', async () => {
    await page.clock.runFor(200)
    return await tray(guest)
      .getByRole('heading', { name: strings.uploads.finished(1) })
      .isVisible()
  })
  await tray(guest).hover()
  await page.clock.runFor(120_000)
  await expect.poll(() => tray(guest).count()).toBe(1)
  await page.mouse.move(5, 400)
  await guest.button(strings.uploads.close).focus()
  await page.clock.runFor(120_000)
  await expect.poll(() => tray(guest).count()).toBe(1)
  await guest.button(strings.header.signOut).focus()
  await page.clock.runFor(31_000)
  await tray(guest).waitFor({ state: 'detached' })
})

test('G12 the list shows that it waits for the server, and continues when it is back', async () => {
  await using first = await startServer({ MEDIABUCKET_PORT: `${await freePort()}` })
  await using way = await startGateway(first.url)
  await using guest = await visit(browser, first, { url: way.url })
  await guest.signIn(first.token)
  way.holdAfter(way.passed() + 1_500_000)
  await guest.choose(strings.header.upload, [file('film.bin', 3_000_000), file('small.bin', 100)])
  await until('a part of the film', () => way.passed() >= 1_500_000)
  await first.kill()
  await uploadHeading(guest, strings.uploads.waitingForServer)
  const { port } = new URL(first.url)
  await using again = await startServer({ MEDIABUCKET_PORT: port }, first.data)
  way.open()
  await uploadHeading(guest, strings.uploads.finished(2))
  const request = { headers: { authorization: `Bearer ${first.token}` } }
  expect((await readPage(await again.request('/api/media', request))).total).toBe(2)
})
