import { createHash, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { chromium } from 'playwright-core'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, describe, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { launchOptions, sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { freePort } from '../harness/free-port.ts'
import { startGateway } from '../harness/gateway.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readPage } from '../harness/wire.ts'
import { drop } from './drop.ts'
import { hostileName, manyKinds, picture, writeFiles } from './files.ts'
import { type Visit, visit } from './visit.ts'

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** The SHA-256 of each item in the bucket, by name. */
async function stored(server: SharedServer): Promise<ReadonlyMap<string | null, string | null>> {
  const found = new Map<string | null, string | null>()
  for (let page = 1, last = 1; page <= last; page++) {
    const listing = await readPage(await server.request(`/api/media?page=${page}`))
    last = listing.last_page
    for (const url of listing.data) {
      const id = /([0-9a-z]{28})(?:\.\w+)?$/.exec(url)?.[1]
      const item = await readItem(await server.request(`/api/media/${id}`))
      found.set(item.filename, item.sha256)
    }
  }
  return found
}

const tray = ({ page }: Visit) => page.getByRole('region', { name: strings.uploads.label })
const uploadHeading = (guest: Visit, words: string) =>
  tray(guest).getByRole('heading', { name: words, exact: true }).waitFor()

/** Until all are rendered, which has a low priority beside other tests. Milliseconds. */
const rendered = 120_000

describe('25 files of many kinds', () => {
  test('G7 by drop and by button: all are stored unchanged and shown by their type', async () => {
    const server = await sharedServer()
    const kinds = await manyKinds()
    await using files = await writeFiles(kinds)
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    const { page } = guest
    await page.getByText(strings.listing.empty).waitFor()

    await drop(page, files.paths.slice(0, 12), () =>
      page.getByText(strings.adding.drop, { exact: true }).waitFor(),
    )
    await uploadHeading(guest, strings.uploads.finished(12))
    await guest.choose(strings.header.upload, files.paths.slice(12))
    await uploadHeading(guest, strings.uploads.finished(25))
    await page.getByText(strings.files(25), { exact: true }).waitFor()

    expect(await stored(server)).toEqual(new Map([...kinds].map(([name, bytes]) => [name, sha256(bytes)])))
    // Pictures have thumbnails, and a hostile name is shown as text.
    const pictures = [...kinds.keys()].filter((name) => /\.(jpg|png|webp|avif|gif|tiff|svg)$/.test(name))
    const shown = new Map<string, boolean>()
    await page.mouse.move(600, 400)
    await until(
      'every name, and every picture',
      async () => {
        const settled = await guest.files.evaluateAll((files) =>
          files.flatMap((file) => {
            const images = [...file.querySelectorAll('.tile-picture [data-state]')]
            const isPending =
              file.querySelector('.skeleton') ||
              images.some((image) => image.getAttribute('data-state') !== 'shown')
            const name = file.querySelector('[title]')?.getAttribute('title') ?? ''
            return isPending ? [] : [[name, images.length > 0] as const]
          }),
        )
        for (const [name, isDrawn] of settled) shown.set(name, isDrawn)
        // Thumbnails are loaded when they are near the screen, down to the end and up again.
        const atEnd = await page.evaluate(
          'scrollY + innerHeight >= document.documentElement.scrollHeight - 1',
        )
        if (atEnd) await page.evaluate('scrollTo(0, 0)')
        else await page.mouse.wheel(0, 300)
        return shown.size === kinds.size && pictures.every((name) => shown.get(name))
      },
      rendered,
    )
    expect(new Set(shown.keys())).toEqual(new Set(kinds.keys()))
    expect(
      [...shown]
        // Pictures of these depend on the programs that are installed.
        .filter(([name, drawn]) => drawn && !/\.(pdf|webm)$/.test(name))
        .map(([name]) => name)
        .sort(),
    ).toEqual(pictures.sort())
    expect(await page.title()).not.toContain('owned')
    await expect.poll(() => page.locator('img[src="x"], b').count()).toBe(0)
    expect(shown.has(hostileName)).toBe(true)
  })
})

describe('other ways to upload', () => {
  test('a folder is uploaded with all its files, by button and by drop', async () => {
    const server = await sharedServer()
    const inside = (names: readonly string[]) => new Map(names.map((name) => [name, Buffer.from(name)]))
    await using first = await writeFiles(inside(['album/a.txt', 'album/deeper/b.txt']))
    await using second = await writeFiles(inside(['other/c.txt', 'other/deeper/still/d.txt']))
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    await guest.choose(strings.listing.chooseFolder, `${first.directory}/album`)
    await uploadHeading(guest, strings.uploads.finished(2))
    await drop(guest.page, [`${second.directory}/other`])
    await uploadHeading(guest, strings.uploads.finished(4))
    expect([...(await stored(server)).keys()].sort()).toEqual(['a.txt', 'b.txt', 'c.txt', 'd.txt'])
  })

  test('a pasted picture is uploaded', async () => {
    const server = await sharedServer()
    await using guest = await visit(browser, server, {
      options: { permissions: ['clipboard-read', 'clipboard-write'] },
    })
    await guest.signIn(server.token)
    const bytes = (await picture(1, 40, 40).png().toBuffer()).toString('base64')
    await guest.page.evaluate(`(async () => {
      const bytes = Uint8Array.from(atob('${bytes}'), (character) => character.charCodeAt(0))
      const blob = new Blob([bytes], { type: 'image/png' })
      await navigator.clipboard.write([new ClipboardItem({ 'image/png': blob })])
    })()`)
    await guest.page.keyboard.press('Control+V')
    await uploadHeading(guest, strings.uploads.finished(1))
    await guest.files.locator('[data-state=shown]').waitFor()
  })

  test('a text that is pasted into a field stays a text, also if programs have copied a picture of it', async () => {
    const server = await sharedServer()
    await upload(server, 'a text', { name: 'a.txt' })
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    const search = guest.page.getByRole('searchbox')
    await search.focus()
    // As of cells and paragraphs from office programs. A page cannot write files into the clipboard.
    const isPrevented = (withText: boolean) =>
      guest.page.evaluate(`{
        const data = new DataTransfer()
        ${withText ? "data.setData('text/plain', 'lake')" : ''}
        data.items.add(new File(['picture'], 'image.png', { type: 'image/png' }))
        const event = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
        !document.activeElement.dispatchEvent(event)
      }`)
    expect(await isPrevented(true)).toBe(false)
    expect(await isPrevented(false)).toBe(true)
    await uploadHeading(guest, strings.uploads.finished(1))
  })

  test('Q1 a file that does not fit is refused with the reason and can be retried', async () => {
    const server = await sharedServer()
    await upload(server, new Uint8Array(4_000))
    await runHere(server.data, 'bucket set', server.bucket, '--max-bytes', '8000')
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    const file = { name: 'large.bin', mimeType: 'application/octet-stream', buffer: randomBytes(5_000) }
    await guest.choose(strings.header.upload, [file])
    await uploadHeading(guest, strings.uploads.failed(1))
    await runHere(server.data, 'bucket set', server.bucket, '--max-bytes', '10000')
    await guest.button(strings.uploads.retry('large.bin')).click()
    await uploadHeading(guest, strings.uploads.finished(1))
    expect((await stored(server)).get('large.bin')).toBe(sha256(file.buffer))
  })
})

describe('interruptions', () => {
  const large = () => randomBytes(6_000_000)
  const half = 3_000_000

  test('a paused upload continues from its offset', async () => {
    const server = await sharedServer()
    await using way = await startGateway(server.url)
    await using guest = await visit(browser, server, { url: way.url })
    await guest.signIn(server.token)
    const buffer = large()
    way.holdAfter(half)
    await guest.choose(strings.header.upload, [{ name: 'film.bin', mimeType: 'video/mp4', buffer }])
    await until('half of the file', () => way.passed() >= half)
    await guest.button(strings.uploads.pause('film.bin')).click()
    await guest.button(strings.uploads.resume('film.bin')).waitFor()
    way.open()
    await guest.button(strings.uploads.resume('film.bin')).click()
    await uploadHeading(guest, strings.uploads.finished(1))
    expect(await stored(server)).toEqual(new Map([['film.bin', sha256(buffer)]]))
    // Stored bytes are not sent again.
    expect(way.passed()).toBeLessThan(buffer.length + half)
  })

  test('G10 a file that changes during its upload fails, and its reserved space is freed', async () => {
    const server = await sharedServer()
    await using way = await startGateway(server.url)
    await using guest = await visit(browser, server, { url: way.url })
    await guest.signIn(server.token)
    // More than two chunks, the second of which is read before the change.
    await using files = await writeFiles(new Map([['film.bin', randomBytes(12_000_000)]]))
    way.holdAfter(half)
    await guest.choose(strings.header.upload, files.paths)
    await until('half of the file', () => way.passed() >= half)
    const reserved = async () => {
      const response = await server.request('/api/bucket')
      return Value.Parse(Type.Object({ reserved_bytes: Type.Integer() }), await response.json())
        .reserved_bytes
    }
    expect(await reserved()).toBe(12_000_000)
    await writeFile(files.paths[0] ?? '', 'other content')
    way.open()
    await uploadHeading(guest, strings.uploads.failed(1))
    await tray(guest).getByText(strings.uploads.changed).waitFor()
    await until('the end of the upload', async () => (await reserved()) === 0)
    expect(await stored(server)).toEqual(new Map())
  })

  test('R6 an upload continues after a lost connection and a restart of the server', async () => {
    await using first = await startServer({ MEDIABUCKET_PORT: `${await freePort()}` })
    await using way = await startGateway(first.url)
    await using guest = await visit(browser, first, { url: way.url })
    await guest.signIn(first.token)
    const buffer = large()
    way.holdAfter(half)
    await guest.choose(strings.header.upload, [{ name: 'film.bin', mimeType: 'video/mp4', buffer }])
    await until('half of the file', () => way.passed() >= half)
    await first.kill()
    await guest.page.getByText(strings.connection.lost).first().waitFor()
    const { port } = new URL(first.url)
    await using again = await startServer({ MEDIABUCKET_PORT: port }, first.data)
    way.open()
    await uploadHeading(guest, strings.uploads.finished(1))
    const request = (path: string) =>
      again.request(path, { headers: { authorization: `Bearer ${first.token}` } })
    expect(await stored({ ...again, request })).toEqual(new Map([['film.bin', sha256(buffer)]]))
  })

  test('an upload continues after the browser was closed', async () => {
    const server = await sharedServer()
    await using way = await startGateway(server.url)
    await using profile = await temporaryDirectory()
    const buffer = large()
    const open = () =>
      chromium.launchPersistentContext(profile.path, { ...launchOptions, reducedMotion: 'reduce' })
    way.holdAfter(half)
    const before = await open()
    try {
      const guest = await visit(null, server, { url: way.url, context: before })
      await guest.signIn(server.token)
      await guest.choose(strings.header.upload, [{ name: 'film.bin', mimeType: 'video/mp4', buffer }])
      await until('half of the file', () => way.passed() >= half)
      // Before this text appears, the browser may lose the file: it has not stored it yet.
      await tray(guest).getByText(strings.uploads.continuesLater).waitFor()
      await guest[Symbol.asyncDispose]()
    } finally {
      await before.close()
    }
    expect(await stored(server)).toEqual(new Map())
    way.open()

    const after = await open()
    try {
      await using guest = await visit(null, server, { url: way.url, context: after })
      // The profile is still signed in (G6).
      await uploadHeading(guest, strings.uploads.finished(1))
      expect(await stored(server)).toEqual(new Map([['film.bin', sha256(buffer)]]))
      expect(way.passed()).toBeLessThan(buffer.length + half)
    } finally {
      await after.close()
    }
  })
})
