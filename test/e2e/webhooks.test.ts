import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { type Receiver, respondWith, startReceiver } from '../harness/receiver.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { expectAccessible } from './accessibility.ts'
import { visit } from './visit.ts'

let browser: Browser
let server: TestServer
let receiver: Receiver
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1' })
  receiver = await startReceiver()
  browser = await sharedBrowser()
})
afterAll(async () => {
  await receiver.close()
  await server[Symbol.asyncDispose]()
})

await loadTexts('webhooks')
const { webhooks } = strings

test('G38, WH2, WH10 a webhook is created, tested, switched off and deleted, and its deliveries are listed', async () => {
  const { token, authorization } = await makeToken(
    server,
    '--bucket',
    'b',
    '--scope',
    'webhooks:manage,media:write,media:read',
  )
  await using guest = await visit(browser, server, { hash: '' })
  await guest.signIn(token)
  const { page } = guest
  const dialog = page.getByRole('dialog')
  await guest.button(strings.settings.label).click()
  await page.getByRole('link', { name: strings.sections.webhooks }).click()
  await page.getByText(webhooks.none).waitFor()
  await guest.button(webhooks.create).click()
  await dialog.getByLabel(webhooks.url).fill('http://10.0.0.1/')
  await dialog.getByLabel(webhooks.kindNames['edited'] ?? '').uncheck()
  await dialog.getByRole('button', { name: webhooks.create }).click()
  await dialog.getByRole('alert').getByText('MEDIABUCKET_WEBHOOK_ALLOW').waitFor()
  await expectAccessible(guest, 'create a webhook')
  // As high as other fields.
  await expect
    .poll(async () => (await dialog.getByLabel(webhooks.url).boundingBox())?.height)
    .toBeGreaterThanOrEqual(44)
  await dialog.getByLabel(webhooks.url).fill(`${receiver.url}?a=<b>`)
  await dialog.getByRole('button', { name: webhooks.create }).click()
  const field = dialog.getByLabel(webhooks.secret, { exact: true })
  await field.waitFor()
  const secret = await field.inputValue()
  receiver.secrets.add(secret)
  await page.keyboard.press('Escape')
  const row = page.getByRole('list', { name: strings.sections.webhooks }).getByRole('listitem')
  await row.waitFor()
  await expect.poll(() => page.content()).not.toContain(secret)
  const action = (name: string) => row.getByRole('button', { name: new RegExp(`^${name}`) })

  receiver.respond = respondWith(200, 'thank <i>you</i>')
  await action(webhooks.test).click()
  await page.getByText(webhooks.delivered(200)).waitFor()
  // The test opens the deliveries.
  await row.getByRole('cell', { name: 'thank <i>you</i>' }).waitFor()
  expect((await row.getByRole('cell').allInnerTexts()).slice(1)).toEqual([
    expect.any(String),
    'webhook.test',
    '200',
    expect.stringMatching(/^\d+ ms$/),
    'thank <i>you</i>',
    webhooks.repeat,
  ])
  // The service does not try again during the test.
  receiver.respond = respondWith(500, 'no', { 'retry-after': '3600' })
  const before = receiver.received.length
  await server.request('/api/media', { method: 'POST', body: 'x', headers: { authorization } })
  await until('the change arrives', () => receiver.received.length > before)
  await action(webhooks.repeat).first().click()
  await page.getByText(webhooks.notDelivered('The receiver responded with 500.')).waitFor()
  await row.getByText(webhooks.failing(1)).waitFor()
  await row.getByRole('cell', { name: 'item.added' }).waitFor()
  await expectAccessible(guest, 'webhooks')

  // On phones, the buttons are in a menu, and deliveries are cards that need no scrolling to the side.
  await page.setViewportSize({ width: 375, height: 812 })
  await expect.poll(() => action(webhooks.switchOff).count()).toBe(0)
  const cells = row.getByRole('row').nth(1).getByRole('cell')
  await expect
    .poll(async () => {
      const boxes = await Promise.all((await cells.all()).map((cell) => cell.boundingBox()))
      const isBelow = boxes.every((box, at) => at === 0 || (box?.y ?? 0) > (boxes[at - 1]?.y ?? 0))
      return isBelow && boxes.every((box) => box !== null && box.x >= 0 && box.x + box.width <= 375)
    })
    .toBe(true)
  await action(webhooks.actions).press('Enter')
  await expect.poll(() => page.locator('.webhook-menu').getByRole('button').count()).toBe(5)
  await expectAccessible(guest, 'the menu of a webhook')
  await page.setViewportSize({ width: 375, height: 812 })
  await action(webhooks.switchOff).press('Enter')
  await row.getByText(webhooks.states['off'] ?? '', { exact: true }).waitFor()
  await action(webhooks.actions).click()
  await action(webhooks.switchOn).click()
  await row.getByText(webhooks.states['off'] ?? '', { exact: true }).waitFor({ state: 'detached' })
  await page.setViewportSize({ width: 1440, height: 900 })

  await action(webhooks.switchOff).click()
  await row.getByText(webhooks.states['off'] ?? '', { exact: true }).waitFor()
  await action(webhooks.delete).click()
  await dialog.getByRole('button', { name: webhooks.delete, exact: true }).click()
  await page.getByText(webhooks.none).waitFor()
})
