import type { Browser } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { tone } from './files.ts'
import { type Visit, visit } from './visit.ts'

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  for (const name of ['harbour one.txt', 'harbour two.txt', 'island.txt'])
    await upload(server, name, { name })
  await upload(server, tone(), { name: 'harbour.wav', type: 'audio/wav' })
})

const hash = ({ page }: Visit) => new URL(page.url()).hash
const shows = (guest: Visit, ...expected: string[]) =>
  until(`the files ${expected.join(', ')}`, async () => {
    const boxes = guest.page.locator('.timeline').getByRole('checkbox')
    const labels = await boxes.evaluateAll((all) => all.map((box) => box.getAttribute('aria-label')))
    return `${labels}` === `${expected.map(strings.selection.select)}`
  })

test('G30 the address names what is chosen; Back and a reload restore it, and others can open it', async () => {
  await using guest = await visit(browser, server, { hash: '' })
  await guest.signIn(server.token)
  const { page } = guest
  await shows(guest, 'harbour.wav', 'island.txt', 'harbour two.txt', 'harbour one.txt')
  await page.getByLabel(strings.filter.kind).selectOption('document')
  await shows(guest, 'island.txt', 'harbour two.txt', 'harbour one.txt')
  const search = page.getByLabel(strings.filter.search)
  await search.pressSequentially('harb')
  await shows(guest, 'harbour two.txt', 'harbour one.txt')
  await search.pressSequentially('our tw')
  await shows(guest, 'harbour two.txt')
  await search.fill('harbour')
  await shows(guest, 'harbour two.txt', 'harbour one.txt')
  await guest.button(strings.timeline.newestFirst).click()
  await shows(guest, 'harbour one.txt', 'harbour two.txt')
  await guest.button(strings.view.list).click()
  await page.locator('.as-list').waitFor()
  const sent = hash(guest)
  expect(sent).toBe('#kind=document&name=harbour&order=oldest&view=list')

  await page.reload()
  await shows(guest, 'harbour one.txt', 'harbour two.txt')
  await expect.poll(() => search.inputValue()).toBe('harbour')
  await page.goBack()
  await page.locator('.as-grid').waitFor()
  await page.goBack()
  await shows(guest, 'harbour two.txt', 'harbour one.txt')
  await page.goBack()
  await shows(guest, 'island.txt', 'harbour two.txt', 'harbour one.txt')
  await expect.poll(() => search.inputValue()).toBe('')
  await page.goForward()
  await shows(guest, 'harbour two.txt', 'harbour one.txt')
  await expect.poll(() => search.inputValue()).toBe('harbour')

  await using other = await visit(browser, server, { hash: sent })
  await other.signIn(server.token)
  await shows(other, 'harbour one.txt', 'harbour two.txt')
  await other.page.locator('.as-list').waitFor()
  await other.page.locator('.tile a').first().click()
  await other.page.getByRole('dialog').waitFor()
  await expect
    .poll(() => hash(other))
    .toMatch(/^#kind=document&name=harbour&order=oldest&view=list&item=\w+$/)
  await other.page.keyboard.press('Escape')
  // What the address names is not remembered for this browser.
  await other.page.goto('about:blank')
  await other.page.goto(`${server.url}/`)
  await shows(other, 'harbour.wav', 'island.txt', 'harbour two.txt', 'harbour one.txt')
})
