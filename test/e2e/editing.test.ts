import type { Browser } from 'playwright-core'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, expect } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { browserTest } from '../harness/browser.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { picture } from './files.ts'
import { visit } from './visit.ts'

const Texts = Type.Object({
  filename: Type.String(),
  alt_text: Type.Union([Type.String(), Type.Null()]),
  caption: Type.Union([Type.String(), Type.Null()]),
})

let browser: Browser
let server: SharedServer
let id: string
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  id = (await upload(server, new Uint8Array(await picture(1).jpeg().toBuffer()), { name: 'harbour.jpg' })).id
})

const stored = async () => Value.Parse(Texts, await (await server.request(`/api/media/${id}`)).json())

async function opened(token: string) {
  const guest = await visit(browser, { ...server, token }, { hash: `#item=${id}` })
  await guest.signIn(token)
  await guest.button(strings.viewer.details).click()
  return guest
}

browserTest(
  'M5, M6 name, alternative text and caption are changed; an edit by others is not overwritten',
  async () => {
    await using guest = await opened(server.token)
    const { page } = guest
    await guest.button(strings.details.edit).click()
    await page.getByLabel(strings.details.name, { exact: true }).fill('port.jpg')
    await page.getByLabel(strings.details.altText).fill('Ships in a port')
    // Arrow keys move the cursor.
    await page.keyboard.press('ArrowLeft')
    await page.getByLabel(strings.details.caption).fill('Summer\n2026')
    await guest.button(strings.details.save).click()
    await page.getByText(strings.details.saved, { exact: true }).first().waitFor()
    await page.getByRole('dialog', { name: strings.viewer.label('port.jpg') }).waitFor()
    expect(await stored()).toMatchObject({
      filename: 'port.jpg',
      alt_text: 'Ships in a port',
      caption: 'Summer\n2026',
    })

    await guest.button(strings.details.edit).click()
    await page.getByLabel(strings.details.caption).fill('Mine')
    const headers = { 'content-type': 'application/json' }
    await server.request(`/api/media/${id}`, { method: 'PATCH', headers, body: '{"caption": "Theirs"}' })
    await guest.button(strings.details.save).click()
    await page.locator('.notice.bad').waitFor()
    expect((await stored()).caption).toBe('Theirs')
  },
)

browserTest('M6 an edit is saved although the first variant was rendered in the meantime', async () => {
  const file = await upload(server, new Uint8Array(await picture(2).jpeg().toBuffer()), { name: 'quay.jpg' })
  const context = await browser.newContext({ reducedMotion: 'reduce' })
  await context.route(/[?&]variant=/, (route) => route.abort())
  await using guest = await visit(browser, server, { hash: `#item=${file.id}`, context })
  const { page } = guest
  await guest.signIn(server.token)
  await guest.button(strings.viewer.details).click()
  await guest.button(strings.details.edit).click()
  await page.getByLabel(strings.details.name, { exact: true }).fill('pier.jpg')

  const etag = async () => (await server.request(`/api/media/${file.id}`)).headers.get('etag')
  const before = await etag()
  await server.request(`${new URL(file.url).pathname}?variant=thumb`)
  await until('the entity tag changes', async () => (await etag()) !== before)

  await guest.button(strings.details.save).click()
  await page.getByRole('dialog', { name: strings.viewer.label('pier.jpg') }).waitFor()
})

browserTest('A3 a token without media:write offers no editing', async () => {
  const { token } = await makeToken(server, '--bucket', server.bucket, '--scope', 'media:read')
  await using guest = await opened(token)
  await guest.page.getByRole('complementary', { name: strings.details.title }).waitFor()
  expect(await guest.button(strings.details.edit).count()).toBe(0)
})
