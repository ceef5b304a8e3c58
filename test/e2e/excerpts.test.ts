import type { Browser } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { sharedBrowser } from '../harness/chromium.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { visit } from './visit.ts'

let browser: Browser
let server: SharedServer
const markup = '<b>bold</b><script>document.title="owned"</script>'
const utf16Line = 'Möwen am Hafen — 海鷗\n'
const ids: string[] = []
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  const files: readonly (readonly [string, string | Uint8Array<ArrayBuffer>, string])[] = [
    ['notes.txt', `first line ${markup}\n${'more text '.repeat(500)}`, 'text/plain'],
    ['code.js', `show('${markup}')`, 'text/javascript'],
    ['empty.txt', '', 'text/plain'],
    [
      'drawing.svg',
      `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><script>document.title="owned"</script><circle r="40"/></svg>`,
      'image/svg+xml',
    ],
    ['wide.txt', new Uint8Array(Buffer.from(`\ufeff${utf16Line.repeat(1000)}`, 'utf16le')), 'text/plain'],
  ]
  for (const [name, bytes, type] of files) ids.push((await upload(server, bytes, { name, type })).id)
})

test('G20, G7 tiles show the first lines of texts as text, and a drawing without its script', async () => {
  await using guest = await visit(browser, server, { hash: '' })
  await guest.signIn(server.token)
  const { page } = guest
  const [notes, code, empty, drawing] = ids.map((id) => page.locator(`.tile[data-id="${id}"]`))
  await until('the first lines', async () =>
    (await notes?.locator('.tile-excerpt').textContent())?.startsWith(`first line ${markup}\nmore text`),
  )
  await expect.poll(async () => (await notes?.locator('.tile-excerpt').textContent())?.length).toBe(1024)
  await until('the code', async () => (await code?.locator('.tile-excerpt').textContent())?.includes(markup))
  await drawing?.locator('[data-state=shown]').waitFor()
  await expect.poll(() => empty?.locator('.tile-excerpt').count()).toBe(0)
  await expect.poll(() => empty?.locator('.icon').count()).toBeGreaterThan(0)
  expect(await page.title()).not.toContain('owned')
})

test('G20 a text in UTF-16 is readable on its tile and in the viewer', async () => {
  await using guest = await visit(browser, server, { hash: '' })
  await guest.signIn(server.token)
  const tile = guest.page.locator(`.tile[data-id="${ids[4]}"]`)
  await until('the first lines', async () =>
    (await tile.locator('.tile-excerpt').textContent())?.startsWith(utf16Line.repeat(3)),
  )
  await tile.locator('a').click()
  await until('the text', async () =>
    (await guest.page.locator('.text-scroll pre').textContent())?.startsWith(utf16Line.repeat(3)),
  )
})

test('G20 the circle that selects a text does not cover its first lines, and indents them only while it is shown, on phones and desktops', async () => {
  await using guest = await visit(browser, server, { hash: '' })
  await guest.signIn(server.token)
  const { page } = guest
  for (const width of [375, 1440])
    for (const hash of ['#', '#view=list']) {
      await page.setViewportSize({ width, height: 800 })
      await page.goto(`${server.url}/${hash}`)
      await page.locator(hash === '#' ? '.as-grid' : '.as-list').waitFor()
      const tile = page.locator(`.tile[data-id="${ids[0]}"]`)
      await until('the first lines', () => tile.locator('.tile-excerpt').count())
      await page.mouse.move(2, 2)
      const starts = () =>
        tile.evaluate((element) => {
          const text = element.ownerDocument.createRange()
          text.selectNodeContents(element.querySelector('.tile-excerpt') ?? element)
          const lefts = [...text.getClientRects()].map(({ left }) => left)
          return (lefts[0] ?? 0) - Math.min(...lefts)
        })
      await expect.poll(starts, { message: `${width} pixels, ${hash}` }).toBe(0)
      await tile.hover()
      const covered = () =>
        tile.evaluate((element) => {
          const circle = element.querySelector('.tick')?.getBoundingClientRect()
          const text = element.ownerDocument.createRange()
          text.selectNodeContents(element.querySelector('.tile-excerpt') ?? element)
          return [...text.getClientRects()].filter(
            (line) =>
              circle &&
              line.left < circle.right &&
              circle.left < line.right &&
              line.top < circle.bottom &&
              circle.top < line.bottom,
          ).length
        })
      await expect.poll(covered, { message: `${width} pixels, ${hash}` }).toBe(0)
    }
})
