import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { upload } from '../harness/upload.ts'
import { visit } from './visit.ts'

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  await upload(server, 'x', { name: 'notes.txt' })
  browser = await sharedBrowser()
})

const stored = `JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])`

describe('G6', () => {
  test('G6 a token can be entered by keyboard, and the session survives a reload and new tabs', async () => {
    await using guest = await visit(browser, server)
    const { page } = guest
    // The field has the focus after the page is loaded.
    await expect.poll(() => page.evaluate('document.activeElement?.id')).toBe('token')
    await page.keyboard.insertText(server.token)
    await page.keyboard.press('Enter')
    await guest.files.getByText('notes.txt').waitFor()

    await page.reload()
    await guest.files.getByText('notes.txt').waitFor()
    await expect.poll(() => page.evaluate(stored)).toContain(server.token)

    await page.close()
    const other = await guest.context.newPage()
    await other.goto(server.url)
    await other.getByText('notes.txt').waitFor()
    expect(await other.title()).not.toContain('mbkt_')
    // The key contains the path, for other servers behind the same proxy.
    await expect.poll(() => other.evaluate('Object.keys(localStorage)')).toEqual(['mediabucket.session /'])
  })

  test('G6 without the checkbox the session lasts until the tab is closed', async () => {
    await using guest = await visit(browser, server)
    const { page } = guest
    await page.getByLabel(strings.signIn.keep).uncheck()
    await guest.signIn(server.token)
    await page.reload()
    await guest.files.getByText('notes.txt').waitFor()
    expect(await page.evaluate('JSON.stringify([{ ...localStorage }, document.cookie])')).not.toContain(
      'mbkt_',
    )
    const other = await guest.context.newPage()
    await other.goto(server.url)
    await other.getByLabel(strings.signIn.token, { exact: true }).waitFor()
  })

  test('G6 signing out in one tab signs out all of them', async () => {
    await using guest = await visit(browser, server)
    await guest.page.getByLabel(strings.signIn.keep).uncheck()
    await guest.signIn(server.token)
    await using second = await visit(browser, server, { context: guest.context })
    await second.signIn(server.token)
    const third = await guest.context.newPage()
    await third.goto(server.url)
    await third.getByText('notes.txt').waitFor()
    await second.button(strings.header.signOut).click()
    for (const page of [guest.page, second.page, third]) {
      await page.getByText(strings.signIn.signedOut).waitFor()
      expect(await page.evaluate(stored)).not.toContain('mbkt_')
      expect(await page.content()).not.toContain('notes.txt')
    }
  })

  test('G6 24 hours after the sign-in every tab is signed out', async () => {
    await using guest = await visit(browser, server, { movesClock: true })
    await guest.signIn(server.token)
    await guest.files.getByText('notes.txt').waitFor()
    await guest.context.clock.fastForward('23:00:00')
    await guest.page.reload()
    await guest.files.getByText('notes.txt').waitFor()
    await guest.context.clock.fastForward('01:00:01')
    await guest.page.getByText(strings.signIn.dayPassed).waitFor()
    expect(await guest.page.evaluate(stored)).not.toContain('mbkt_')
    const other = await guest.context.newPage()
    await other.goto(server.url)
    await other.getByLabel(strings.signIn.token, { exact: true }).waitFor()
  })

  test('G6 signing out removes the token, and a reload shows nothing', async () => {
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    await guest.files.first().waitFor()
    await guest.button(strings.header.signOut).click()
    await guest.page.getByText(strings.signIn.signedOut).waitFor()
    expect(await guest.page.evaluate(stored)).not.toContain('mbkt_')
    expect(await guest.page.content()).not.toContain('mbkt_a')
    await guest.page.reload()
    await guest.button(strings.signIn.submit).waitFor()
    await expect.poll(() => guest.files.count()).toBe(0)
  })

  test('G6, A3 a missing, a malformed and an unknown token, and one without media:read, are refused with the reason', async () => {
    const writer = await makeToken(server, '--bucket', server.bucket, '--scope', 'media:write')
    await using guest = await visit(browser, server)
    for (const [token, message] of [
      ['', strings.signIn.missing],
      ['two words', strings.signIn.malformed],
      ['mbkt_00000000000000000000000000000000000000', strings.signIn.refused],
      [writer.token, 'media:read'],
    ] as const) {
      await guest.page.getByLabel(strings.signIn.token, { exact: true }).fill(token)
      await guest.button(strings.signIn.submit).click()
      await guest.page.getByRole('status').filter({ hasText: message }).waitFor()
      expect(await guest.page.evaluate(stored)).not.toContain('mbkt_')
    }
  })

  test('A7, G6 a revoked token ends the session', async () => {
    const { token, id } = await makeToken(server, '--bucket', server.bucket)
    await using guest = await visit(browser, server)
    await guest.signIn(token)
    await guest.files.first().waitFor()
    // A request of the open page could end the session before a reload.
    await guest.page.goto('about:blank')
    await runHere(server.data, 'token revoke', id)
    await guest.page.goto(`${server.url}/`)
    await guest.page.getByText(strings.signIn.ended).waitFor()
    expect(await guest.page.evaluate(stored)).not.toContain('mbkt_')
  })
})

test('A3 a read-only token shows the files, without buttons to upload or delete', async () => {
  const { token } = await makeToken(server, '--bucket', server.bucket, '--scope', 'media:read')
  await using guest = await visit(browser, server)
  await guest.signIn(token)
  await guest.files.getByText('notes.txt').waitFor()
  await expect.poll(() => guest.button(strings.header.upload).count()).toBe(0)
  await guest.files.getByRole('link').first().click()
  await guest.page.getByRole('dialog').waitFor()
  await expect.poll(() => guest.button(strings.viewer.delete).count()).toBe(0)
  await expect.poll(() => guest.button(strings.viewer.copy).count()).toBe(1)
})
