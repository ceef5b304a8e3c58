import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { expectAccessible } from './accessibility.ts'
import { clip, isDrawn, pdf, picture, tone } from './files.ts'
import { type Visit, visit } from './visit.ts'

await loadTexts('details')

let browser: Browser
let server: SharedServer
let items: Awaited<ReturnType<typeof upload>>[]
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  const files: readonly (readonly [string, Uint8Array, string])[] = [
    ['harbour.jpg', await picture(1, 2400, 1600).jpeg().toBuffer(), 'image/jpeg'],
    ['upright.png', await picture(2, 300, 400).png().toBuffer(), 'image/png'],
    ['clip.webm', await clip(), 'video/webm'],
    ['tone.wav', tone(), 'audio/wav'],
    ['report.pdf', pdf(), 'application/pdf'],
    ['scan.tiff', await picture(3, 300, 200).tiff().toBuffer(), 'image/tiff'],
    ['notes.txt', Buffer.from('Notes of the harbour.\n'), 'text/plain'],
  ]
  items = []
  for (const [name, bytes, type] of files)
    items.push(await upload(server, new Uint8Array(bytes), { name, type }))
  // On a busy machine this takes longer than a test waits for a picture.
  for (const { url, variants } of items)
    if (variants)
      await until(`a picture of ${url}`, async () => (await fetch(`${url}?variant=medium`)).ok, 150_000)
})

const item = (name: string) => {
  const found = items.find(({ filename }) => filename === name)
  if (!found) throw new Error(`no ${name}`)
  return found
}

const dialogOf = ({ page }: Visit, name: string) =>
  page.getByRole('dialog', { name: strings.viewer.label(name), exact: true })

/** A signed-in visit that opens the item by its URL. */
async function opened(name: string, options: Parameters<typeof visit>[2] = {}) {
  const guest = await visit(browser, server, { hash: `#order=oldest&item=${item(name).id}`, ...options })
  await guest.signIn(server.token)
  await dialogOf(guest, name).waitFor()
  return guest
}

describe('viewing', () => {
  test('by keyboard: a file opens, arrow keys step to its neighbours, Escape returns the focus to it', async () => {
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    const { page } = guest
    await guest.files.getByText('harbour.jpg').waitFor()
    await guest.files.getByRole('link').first().focus()
    await page.keyboard.press('Enter')
    await dialogOf(guest, 'harbour.jpg').waitFor()
    const large = dialogOf(guest, 'harbour.jpg').getByRole('img', { name: 'harbour.jpg' })
    await until('the picture', () => isDrawn(large, 401))
    await page.keyboard.press('ArrowRight')
    await dialogOf(guest, 'upright.png').waitFor()
    await expect.poll(() => new URL(page.url()).hash).toBe(`#order=oldest&item=${item('upright.png').id}`)
    await page.keyboard.press('ArrowLeft')
    await dialogOf(guest, 'harbour.jpg').waitFor()
    await page.keyboard.press('Escape')
    await dialogOf(guest, 'harbour.jpg').waitFor({ state: 'detached' })
    await expect.poll(() => page.evaluate('document.activeElement.dataset.item')).toBe(item('harbour.jpg').id)
  })

  test('by keyboard while the code of the slides is loading: arrow keys step, and Alt leaves them to the browser', async () => {
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    const { page } = guest
    const { promise: allowed, resolve: allow } = Promise.withResolvers<void>()
    await page.route('**/assets/photo-swipe-*.js', async (request) => {
      await allowed
      await request.continue()
    })
    await guest.files.getByRole('link', { name: 'harbour.jpg' }).click()
    await dialogOf(guest, 'harbour.jpg').waitFor()
    await page.keyboard.press('ArrowRight')
    await dialogOf(guest, 'upright.png').waitFor()
    await page.keyboard.press('ArrowRight')
    await dialogOf(guest, 'clip.webm').waitFor()
    await page.evaluate(
      'window.addEventListener("keydown", ({ defaultPrevented }) => { document.body.dataset.prevented = defaultPrevented })',
    )
    await page.keyboard.press('Alt+ArrowLeft')
    expect(await page.evaluate('document.body.dataset.prevented')).toBe('false')
    await dialogOf(guest, 'clip.webm').waitFor()
    await page.keyboard.press('ArrowLeft')
    await dialogOf(guest, 'upright.png').waitFor()
    expect(await page.evaluate('document.body.dataset.prevented')).toBe('true')
    allow()
    const large = dialogOf(guest, 'upright.png').getByRole('img', { name: 'upright.png' })
    await until('the picture', () => isDrawn(large, 300))
    await page.keyboard.press('ArrowRight')
    await dialogOf(guest, 'clip.webm').waitFor()
  })

  test('the details show all properties; a link is copied by the Clipboard API', async () => {
    await using guest = await opened('harbour.jpg', {
      options: { permissions: ['clipboard-read', 'clipboard-write'] },
    })
    await guest.button(strings.viewer.details).click()
    const details = guest.page.getByRole('complementary', { name: strings.details.title })
    const { sha256, size, url } = item('harbour.jpg')
    for (const text of [
      'harbour.jpg',
      'image/jpeg',
      size.toLocaleString('en'),
      '2,400 × 1,600',
      sha256 ?? '',
    ])
      await details.getByText(text).first().waitFor()
    await expect.poll(() => details.getByLabel(strings.details.link, { exact: true }).inputValue()).toBe(url)
    await guest.button(strings.viewer.copy).click()
    await guest.page.getByText(strings.link.copied(1)).first().waitFor()
    await expect.poll(() => guest.page.evaluate('navigator.clipboard.readText()')).toBe(url)
  })

  test('a swipe goes to the next picture', async () => {
    await using guest = await opened('harbour.jpg', {
      options: { hasTouch: true, viewport: { width: 375, height: 700 } },
    })
    const large = dialogOf(guest, 'harbour.jpg').getByRole('img', { name: 'harbour.jpg' })
    await until('the picture', () => isDrawn(large, 301))
    const tools = await guest.context.newCDPSession(guest.page)
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', x: number) =>
      tools.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: type === 'touchEnd' ? [] : [{ x, y: 350 }],
      })
    await touch('touchStart', 320)
    for (let x = 300; x >= 60; x -= 30) await touch('touchMove', x)
    await touch('touchEnd', 60)
    await dialogOf(guest, 'upright.png').waitFor()
  })

  test('B3 a video and a sound play and can seek; a file is downloaded under its name', async () => {
    await using guest = await opened('clip.webm')
    const { page } = guest
    for (const [name, element, length] of [
      ['clip.webm', 'video', 6],
      ['tone.wav', 'audio', 2],
    ] as const) {
      await page.goto(`${server.url}/#order=oldest&item=${item(name).id}`)
      const player = dialogOf(guest, name).locator(element)
      await until(`the length of ${name}`, () =>
        player.evaluate(({ duration }) => Math.round(duration)).then((seconds) => seconds === length),
      )
      await player.evaluate((player) => {
        player.muted = true
        return player.play()
      })
      await until('it plays', () => player.evaluate(({ currentTime }) => currentTime > 0))
      await player.evaluate((player, to) => {
        player.pause()
        return new Promise((sought) => {
          player.onseeked = () => sought(null)
          player.currentTime = to
        })
      }, length - 1)
      await expect
        .poll(() => player.evaluate(({ currentTime, error }) => [currentTime, error]))
        .toEqual([length - 1, null])
      expect(guest.statusesOf(`${server.url}/media/${item(name).id}`)[0]).toBe(206)
    }
    await page.goto(`${server.url}/#order=oldest&item=${item('notes.txt').id}`)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      dialogOf(guest, 'notes.txt').getByRole('link', { name: strings.viewer.download }).first().click(),
    ])
    expect(download.suggestedFilename()).toBe('notes.txt')
    expect(await readFile(await download.path(), 'utf8')).toBe('Notes of the harbour.\n')
  })

  test('G31 the first page of a PDF is shown, and the PDF opens in a new tab', async () => {
    await using guest = await opened('report.pdf')
    const page = dialogOf(guest, 'report.pdf').getByAltText(strings.slides.firstPage)
    needTools('pdftoppm')
    await until('the first page', () => isDrawn(page, 200))
    const link = dialogOf(guest, 'report.pdf').getByRole('link', { name: strings.slides.openPdf })
    const address = await link.evaluate(({ href }) => href)
    const received = guest.context.waitForEvent('response', (response) => response.url() === address)
    await link.click()
    const response = await received
    expect([response.status(), response.headers()['content-type']]).toEqual([200, 'application/pdf'])
    expect(response.headers()['content-disposition']).toMatch(/^inline/)
  })

  test.each([
    ['report.pdf', strings.slides.firstPage],
    ['scan.tiff', 'scan.tiff'],
  ])('G31 the picture of %s is requested again when the service could not render it', async (name, text) => {
    await using guest = await visit(browser, server, {
      hash: `#order=oldest&item=${item(name).id}`,
    })
    // The picture itself, and the request for the time to wait.
    const refused = new Set<string>()
    await guest.page.route(/variant=medium/, async (route) => {
      if (refused.has('HEAD')) return await route.continue()
      refused.add(route.request().method())
      await route.fulfill({ status: 503, headers: { 'retry-after': '1' } })
    })
    await guest.signIn(server.token)
    const shown = dialogOf(guest, name).getByAltText(text)
    await until('the picture', () => isDrawn(shown, 200))
    expect([...refused]).toEqual(['GET', 'HEAD'])
  })
})

describe('copying a link', () => {
  /** Pastes the clipboard, and waits for this text. */
  async function expectPasted({ page }: Visit, text: string): Promise<void> {
    await page.evaluate(
      `document.body.append(Object.assign(document.createElement('textarea'), { id: 'pasted' }))`,
    )
    await page.locator('#pasted').focus()
    await page.keyboard.press('Control+V')
    await expect.poll(() => page.locator('#pasted').inputValue()).toBe(text)
  }

  test('in an insecure context, without the Clipboard API', async () => {
    const { port } = new URL(server.url)
    await using guest = await opened('harbour.jpg', { url: `http://gallery.test:${port}` })
    expect(await guest.page.evaluate('[isSecureContext, typeof navigator.clipboard]')).toEqual([
      false,
      'undefined',
    ])
    await guest.button(strings.viewer.copy).click()
    await guest.page.getByText(strings.link.copied(1)).first().waitFor()
    await guest.page.keyboard.press('Escape')
    await expectPasted(guest, item('harbour.jpg').url)
  })

  test('of several files at once', async () => {
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    for (const name of ['notes.txt', 'tone.wav'])
      await guest.page.getByLabel(strings.selection.select(name), { exact: true }).check()
    await guest.button(strings.selected.copy).click()
    await guest.page.getByText(strings.link.copied(2)).first().waitFor()
    await expectPasted(guest, `${item('notes.txt').url}\n${item('tone.wav').url}`)
  })
})

describe('deleting', () => {
  const filled = async (count: number) => {
    const own = await sharedServer()
    for (let number = 1; number <= count; number++)
      await upload(own, `${number}`, { name: `file-${number}.txt` })
    return own
  }
  const names = ({ files }: Visit) => files.getByText(/^file-\d+\.txt$/).allTextContents()
  const waitForFiles = async (guest: Visit, wanted: readonly number[]) =>
    await until(`the files ${wanted}`, async () => {
      const shown = await names(guest)
      return JSON.stringify(shown) === JSON.stringify(wanted.map((number) => `file-${number}.txt`))
    })

  test('M2 one file, after a confirmation that can be cancelled', async () => {
    const own = await filled(3)
    await using guest = await visit(browser, own)
    await guest.signIn(own.token)
    await guest.files.getByRole('link', { name: 'file-2.txt' }).click()
    await dialogOf(guest, 'file-2.txt').waitFor()
    const question = guest.page.getByRole('dialog', { name: strings.deletion.title(1) })
    await guest.button(strings.viewer.delete).click()
    await question.getByText('file-2.txt').waitFor()
    await question.getByRole('button', { name: strings.cancel }).click()
    await question.waitFor({ state: 'detached' })
    await dialogOf(guest, 'file-2.txt').getByRole('button', { name: strings.viewer.delete }).click()
    await question.getByRole('button', { name: strings.deletion.confirm(1) }).click()
    // The viewer moves to the next file.
    await dialogOf(guest, 'file-3.txt').waitFor()
    await guest.page.keyboard.press('Escape')
    await waitForFiles(guest, [1, 3])
  })

  test('M2 many at once: a range, and all', async () => {
    const own = await filled(23)
    await using guest = await visit(browser, own)
    await guest.signIn(own.token)
    const { page } = guest
    const box = (number: number) =>
      page.getByLabel(strings.selection.select(`file-${number}.txt`), { exact: true })
    const confirm = async (count: number) => {
      await page
        .getByRole('region', { name: strings.selection.label })
        .getByRole('button', { name: strings.selected.delete })
        .click()
      await page
        .getByRole('dialog')
        .getByRole('button', { name: strings.deletion.confirm(count), exact: true })
        .click()
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    await box(2).click()
    await box(5).click({ modifiers: ['Shift'] })
    await page.getByText(strings.selection.count(4)).first().waitFor()
    await confirm(4)
    const rest = Array.from({ length: 18 }, (_, index) => index + 6)
    await waitForFiles(guest, [1, ...rest])
    await box(15).click()
    await guest.button(strings.selected.all).click()
    await page.getByText(strings.selection.count(19)).first().waitFor()
    await confirm(19)
    await page.getByText(strings.listing.empty).waitFor()
  })
})

describe('G48, B13 names in links', () => {
  const clipboard = { permissions: ['clipboard-read', 'clipboard-write'] }
  const named = (url: string, name: string) => url.replace(/\.[a-z]+(?=$|\?)/, `/${name}$&`)

  test('are chosen below the link of a file, and remembered in the browser, by keyboard', async () => {
    await using guest = await opened('harbour.jpg', { options: clipboard })
    const { page } = guest
    const { url } = item('harbour.jpg')
    await guest.button(strings.viewer.details).click()
    const link = page.getByLabel(strings.details.link, { exact: true })
    const choice = page.getByRole('checkbox', { name: strings.link.names, exact: true })
    await expect.poll(() => link.inputValue()).toBe(url)
    expect(await choice.isChecked()).toBe(false)
    await link.focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    await expect.poll(() => link.inputValue()).toBe(named(url, 'harbour'))
    await expectAccessible(guest, 'names in links')
    await guest.button(strings.viewer.copy).click()
    await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(named(url, 'harbour'))
    expect((await fetch(named(url, 'harbour'))).status).toBe(200)
    await page.reload()
    await guest.button(strings.viewer.details).click()
    await expect.poll(() => link.inputValue()).toBe(named(url, 'harbour'))
    await choice.uncheck()
    await expect.poll(() => link.inputValue()).toBe(url)
  })

  test('are chosen by touch for the links of a selection', async () => {
    await using guest = await visit(browser, server, {
      options: { ...clipboard, hasTouch: true, viewport: { width: 375, height: 812 } },
    })
    await guest.signIn(server.token)
    const { page } = guest
    await guest.files.first().waitFor()
    await page.keyboard.press('Control+A')
    await guest.button(strings.selected.copyAs).tap()
    await page.getByRole('checkbox', { name: strings.link.names, exact: true }).tap()
    await expectAccessible(guest, 'the forms of links')
    await guest.button(strings.selected.form.html).tap()
    const copied = () => page.evaluate('navigator.clipboard.readText()')
    await expect.poll(copied).toContain(`src="${named(item('harbour.jpg').url, 'harbour')}"`)
  })

  test('are written into links that expire; until they are chosen, links are as the service writes them', async () => {
    await using own = await startServer({ MEDIABUCKET_NAMES: 'on', MEDIABUCKET_EXTENSIONS: 'off' })
    await runHere(own.data, 'bucket set', 'default', '--private', 'on')
    const { id } = await upload(own, 'Notes.', { name: 'Notes of May.txt' })
    await using guest = await visit(browser, { ...own, bucket: 'default' }, { options: clipboard })
    await guest.signIn(own.token)
    const { page } = guest
    const copied = async () => `${await page.evaluate('navigator.clipboard.readText()')}`
    await guest.files.getByRole('link', { name: 'Notes of May.txt' }).click()
    await guest.button(strings.viewer.details).click()
    const link = page.getByLabel(strings.details.link, { exact: true })
    await expect.poll(() => link.inputValue()).toBe(`${own.url}/media/${id}/Notes-of-May.txt`)
    const forAnHour = strings.link.validFor(strings.link.lifetime(1))
    const menu = page.locator('.menu:popover-open')
    for (const [isNamed, start] of [
      [true, `${own.url}/media/${id}/Notes-of-May.txt?`],
      [false, `${own.url}/media/${id}?`],
    ] as const) {
      await guest.button(strings.viewer.copy).click()
      await menu.getByRole('checkbox', { name: strings.link.names, exact: true }).setChecked(isNamed)
      await menu.getByRole('button', { name: forAnHour, exact: true }).click()
      await expect.poll(async () => (await copied()).slice(0, start.length)).toBe(start)
      expect(await (await fetch(await copied())).text()).toBe('Notes.')
    }
    await expect.poll(() => link.inputValue()).toBe(`${own.url}/media/${id}.txt`)
  })
})
