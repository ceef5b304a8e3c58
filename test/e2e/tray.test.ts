import { randomBytes } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { browserTest } from '../harness/browser.ts'
import { launchBrowser } from '../harness/chromium.ts'
import { startGateway } from '../harness/gateway.ts'
import { startServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { drop } from './drop.ts'
import { writeFiles } from './files.ts'
import { type Visit, visit } from './visit.ts'

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

// Each starts a server and a browser's window, beside other tests.
vi.setConfig({ testTimeout: 90_000 })

const tray = ({ page }: Visit) => page.getByRole('region', { name: strings.uploads.label })
const told = (guest: Visit, words: string) =>
  tray(guest).getByRole('heading', { name: words, exact: true }).waitFor()
const file = (name: string, size: number) => ({
  name,
  mimeType: 'application/octet-stream',
  buffer: randomBytes(size),
})

browserTest('what is on its way stands before what is done, and in sight', async () => {
  await using server = await startServer()
  await using way = await startGateway(server.url)
  await using guest = await visit(browser, server, { url: way.url })
  await guest.signIn(server.token)
  const small = Array.from({ length: 14 }, (_, index) => file(`small-${index}.bin`, 10 + index))
  await guest.choose(strings.header.upload, small)
  await told(guest, strings.uploads.finished(14))
  way.holdAfter(way.passed() + 1_000_000)
  await guest.choose(strings.header.upload, [file('film.bin', 4_000_000)])
  const pause = guest.button(strings.uploads.pause('film.bin'))
  await pause.waitFor()
  await until('first', async () => {
    const first = tray(guest).getByRole('listitem').first()
    return await first.getByText('film.bin').isVisible()
  })
  const [inside, list] = await Promise.all([pause.boundingBox(), tray(guest).boundingBox()])
  expect((inside?.y ?? Infinity) + (inside?.height ?? 0)).toBeLessThan((list?.y ?? 0) + (list?.height ?? 0))
  way.open()
  await told(guest, strings.uploads.finished(15))
})

browserTest('Q1 a file larger than the whole bucket may be is not offered to be tried again', async () => {
  await using server = await startServer()
  await server.command('bucket', 'set', 'default', '--max-bytes', '6000')
  await using guest = await visit(browser, server)
  await guest.signIn(server.token)
  await guest.choose(strings.header.upload, [file('first.bin', 4000)])
  await told(guest, strings.uploads.finished(1))
  await guest.choose(strings.header.upload, [file('second.bin', 5000), file('never.bin', 7000)])
  await told(guest, strings.uploads.failed(2))
  await guest.button(strings.uploads.retry('second.bin')).waitFor()
  await guest.button(strings.uploads.retry('never.bin')).waitFor({ state: 'detached' })
})

browserTest(
  'A3 with a token that may only read, files held over the page are told to be in vain',
  async () => {
    await using server = await startServer()
    const { token } = await makeToken(server, '--bucket', 'default', '--scope', 'media:read')
    await using files = await writeFiles(new Map([['a.txt', Buffer.from('a')]]))
    await using guest = await visit(browser, server)
    await guest.signIn(token)
    await drop(guest.page, files.paths, async () => {
      await guest.page.getByText(strings.uploads.dropMayNot, { exact: true }).waitFor()
      expect(await guest.page.getByText(strings.uploads.drop, { exact: true }).count()).toBe(0)
    })
    await guest.page.getByText(strings.uploads.mayNot).first().waitFor()
  },
)
