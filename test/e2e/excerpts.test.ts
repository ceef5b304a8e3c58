import type { Browser } from 'playwright-core'
import { beforeAll, expect } from 'vitest'
import { browserTest } from '../harness/browser.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { isDrawn } from './files.ts'
import { visit } from './visit.ts'

let browser: Browser
let server: SharedServer
const markup = '<b>bold</b><script>document.title="owned"</script>'
const ids: string[] = []
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  const files: readonly (readonly [string, string, string])[] = [
    ['notes.txt', `first line ${markup}\n${'more text '.repeat(500)}`, 'text/plain'],
    ['code.js', `show('${markup}')`, 'text/javascript'],
    ['empty.txt', '', 'text/plain'],
    [
      'drawing.svg',
      `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><script>document.title="owned"</script><circle r="40"/></svg>`,
      'image/svg+xml',
    ],
  ]
  for (const [name, bytes, type] of files) ids.push((await upload(server, bytes, { name, type })).id)
})

browserTest(
  'G20, G7 tiles show the first lines of texts as text, and a drawing without its script',
  async () => {
    await using guest = await visit(browser, server, { hash: '#page=1' })
    await guest.signIn(server.token)
    const { page } = guest
    const [notes, code, empty, drawing] = ids.map((id) => page.locator(`.tile[data-id="${id}"]`))
    await until('the first lines', async () =>
      (await notes?.locator('.tile-excerpt').textContent())?.startsWith(`first line ${markup}\nmore text`),
    )
    expect((await notes?.locator('.tile-excerpt').textContent())?.length).toBe(1024)
    await until('the code', async () =>
      (await code?.locator('.tile-excerpt').textContent())?.includes(markup),
    )
    await until('the drawing', () => isDrawn(drawing?.locator('img') ?? page.locator('none')))
    expect(await empty?.locator('.tile-excerpt').count()).toBe(0)
    expect(await empty?.locator('.icon').count()).toBeGreaterThan(0)
    expect(await page.title()).not.toContain('owned')
  },
)
