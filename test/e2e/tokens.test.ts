import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, expect, test } from 'vitest'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { expectProblem } from '../harness/problem.ts'
import { sendSigned, startS3Server } from '../harness/s3-door.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { readItem } from '../harness/wire.ts'
import { expectAccessible } from './accessibility.ts'
import { visit } from './visit.ts'

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
})

await loadTexts('tokens')
const { tokens } = strings

/** The page of tokens of a new bucket, opened from the settings by a token with these scopes besides tokens:manage. */
async function opened(...scopes: string[]) {
  const bucket = uniqueName('tokens')
  const all = ['tokens:manage', ...scopes].flatMap((scope) => ['--scope', scope])
  const own = await makeToken(server, '--bucket', bucket, '--name', 'mine', ...all)
  const guest = await visit(browser, server, { hash: '' })
  await guest.signIn(own.token)
  const { page } = guest
  await guest.button(strings.settings.label).click()
  await page.getByRole('link', { name: strings.sections.tokens }).click()
  const rows = page.getByRole('list', { name: strings.sections.tokens }).getByRole('listitem')
  await rows.first().waitFor()
  const statusWith = async (token: string) =>
    (await server.request('/api/media', { headers: { authorization: `Bearer ${token}` } })).status
  return { guest, page, rows, own, bucket, statusWith, dialog: page.getByRole('dialog') }
}

test('G26, T6 a token is created by keyboard, shown once, and copied', async () => {
  const { guest, page, rows, dialog, statusWith } = await opened('media:read', 'media:write')
  await using _ = guest
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await guest.button(tokens.create).focus()
  await page.keyboard.press('Enter')
  await dialog.getByLabel(tokens.name).fill('backup <b>')
  // The own scopes and no others.
  await expect.poll(() => dialog.getByRole('checkbox').count()).toBe(3)
  await dialog.getByLabel(tokens.scopeNames['media:read'] ?? '').uncheck()
  await page.keyboard.press('Enter')
  await dialog.getByText(tokens.noScope).waitFor()
  await dialog.getByLabel(tokens.scopeNames['media:read'] ?? '').check()
  await expect.poll(() => dialog.getByLabel(tokens.expiry).inputValue()).toBe('90')
  await dialog.getByLabel(tokens.expiry).selectOption('30')
  // The buttons are the last fields: Cancel, Create.
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')

  const field = dialog.getByLabel(tokens.newToken)
  await field.waitFor()
  const secret = await field.inputValue()
  await dialog.getByRole('button', { name: tokens.copy }).click()
  await dialog.getByText(strings.copied).waitFor()
  await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(secret)
  expect(await statusWith(secret)).toBe(200)
  await page.keyboard.press('Escape')
  await rows.filter({ hasText: 'backup <b>' }).waitFor()
  await expect.poll(() => rows.count()).toBe(2)
  await expect.poll(() => page.content()).not.toContain(secret)
  await page.reload()
  await rows.filter({ hasText: 'backup <b>' }).waitFor()
  await expect.poll(() => page.content()).not.toContain(secret)
})

test('G26, T7, T8 tokens are replaced with an overlap, and revoked after a question', async () => {
  const { guest, rows, dialog, bucket, statusWith, page } = await opened('media:read')
  await using _ = guest
  const old = await makeToken(server, '--bucket', bucket, '--name', 'app', '--scope', 'media:read')
  await page.reload()
  const app = rows.filter({ hasText: 'app' })
  await app.getByRole('button', { name: `${tokens.rotate}: app` }).click()
  await expect.poll(() => dialog.getByLabel(tokens.overlap).inputValue()).toBe('86400')
  await dialog.getByLabel(tokens.overlap).selectOption('3600')
  await dialog.getByLabel(tokens.expiry).last().selectOption('0')
  await dialog.getByRole('button', { name: tokens.rotate, exact: true }).click()
  const field = dialog.getByLabel(tokens.newToken)
  await field.waitFor()
  const next = await field.inputValue()
  await dialog.getByRole('button', { name: strings.done }).click()
  expect([await statusWith(old.token), await statusWith(next)]).toEqual([200, 200])

  const first = page.locator(`li[data-id=${old.id}]`)
  await first.getByRole('button', { name: `${tokens.revoke}: app` }).click()
  await dialog.getByRole('button', { name: strings.cancel }).click()
  expect(await statusWith(old.token)).toBe(200)
  await first.getByRole('button', { name: `${tokens.revoke}: app` }).click()
  await dialog.getByRole('button', { name: tokens.revoke, exact: true }).click()
  await first.getByText(tokens.revoked).waitFor()
  expect([await statusWith(old.token), await statusWith(next)]).toEqual([401, 200])
  await expect.poll(() => first.getByRole('button').count()).toBe(0)
})

test.each(['tokens', 'webhooks'] as const)(
  'G26, G38, A3 without its scope, the page of %s says which one is missing, and the command that creates a token with it',
  async (section) => {
    const bucket = uniqueName('plain')
    const { token } = await makeToken(server, '--bucket', bucket)
    await using guest = await visit(browser, server, { hash: '' })
    const { page } = guest
    await guest.signIn(token)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await guest.button(strings.settings.label).press('Enter')
    await page.getByRole('link', { name: strings.sections[section] }).press('Enter')
    await page.getByRole('heading', { name: strings.sections[section] }).waitFor()
    const scope = `${section}:manage`
    await page.getByText(tokens.missing(scope, 1)).waitFor()
    await expectAccessible(guest, `the missing scope of ${section}`)
    await guest.button(tokens.copyCommand).press('Enter')
    await page.getByRole('status').getByText(strings.copied).waitFor()
    const command = Value.Parse(Type.String(), await page.evaluate('navigator.clipboard.readText()'))
    const [npx, program, ...args] = command.split(' ')
    expect([npx, program]).toEqual(['npx', 'mediabucket'])
    const created = (await server.command(...args)).stdout.trim()
    const described = await server.request('/api/token', { headers: { authorization: `Bearer ${created}` } })
    expect(await described.json()).toMatchObject({
      bucket,
      scopes: ['media:read', 'media:write', 'media:delete', scope],
    })
    expect(guest.requests.filter((url) => url.includes(`/api/${section}`))).toEqual([])
  },
)

test('G26 the page and its dialogs are accessible, on phones and desktops, in light and dark', async () => {
  const { guest, page, rows, dialog, bucket } = await opened('media:read', 'media:write', 'media:delete')
  await using _ = guest
  await makeToken(server, '--bucket', bucket, '--name', 'a very long name '.repeat(8).trim())
  const revoked = await makeToken(server, '--bucket', bucket, '--name', 'old phone')
  await server.command('token', 'revoke', revoked.id)
  await page.reload()
  await rows.nth(2).waitFor()
  await expectAccessible(guest, 'list')
  await page.setViewportSize({ width: 375, height: 812 })
  // Neither a badge nor a time has two lines, in the languages with the longest texts.
  const heights = `[...document.querySelectorAll('.badge, .token-times dd')].map((text) => text.clientHeight)`
  for (const language of ['de', 'es', 'en']) {
    await page.locator('[popovertarget=settings]').click()
    await page.locator('#settings select').first().selectOption(language)
    await until('the language', async () => (await page.locator('html').getAttribute('lang')) === language)
    await page.keyboard.press('Escape')
    const found = Value.Parse(Type.Array(Type.Number()), await page.evaluate(heights))
    expect(found.length).toBeGreaterThan(4)
    expect(Math.max(...found), language).toBeLessThan(28)
  }
  await guest.button(tokens.create).click()
  await expectAccessible(guest, 'create')
  await page.keyboard.press('Escape')
  await rows.nth(1).getByRole('button', { name: tokens.rotate }).click()
  await expectAccessible(guest, 'replace')
  await dialog.getByRole('button', { name: tokens.rotate, exact: true }).click()
  await dialog.getByLabel(tokens.newToken).waitFor()
  await expectAccessible(guest, 'new token')
  await page.keyboard.press('Escape')
  await rows.nth(0).getByRole('button', { name: tokens.revoke }).click()
  await dialog.getByText(tokens.revokeOwn).waitFor()
  await expectAccessible(guest, 'revoke')
})

test('G26, U1 a token that can upload is downloaded as a configuration of ShareX, which uploads with it', async () => {
  const { guest, page, dialog } = await opened('media:read', 'media:write')
  await using _ = guest
  await guest.button(tokens.create).click()
  await dialog.getByLabel(tokens.scopeNames['media:write'] ?? '').check()
  await dialog.getByRole('button', { name: tokens.create }).click()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    dialog.getByRole('link', { name: tokens.shareX }).click(),
  ])
  expect(download.suggestedFilename()).toBe('mediabucket.sxcu')
  const { Headers, RequestMethod, RequestURL, ...rest } = Value.Parse(
    ShareX,
    JSON.parse(await readFile(await download.path(), 'utf8')),
  )
  // The request of ShareX for a file.
  const boundary = '--------------------8de2d0f5c7a1b3e'
  const body = [
    `--${boundary}`,
    `Content-Disposition: form-data; name="${rest.FileFormName}"; filename="Größe.txt"`,
    'Content-Type: text/plain',
    '',
    'text',
    `--${boundary}--`,
    '',
  ].join('\r\n')
  const send = (authorization: string | undefined) =>
    fetch(RequestURL, {
      method: RequestMethod,
      headers: {
        authorization: authorization ?? '',
        'content-type': `multipart/form-data; boundary=${boundary}`,
        'user-agent': 'ShareX/17.0.0',
      },
      body,
    })
  const item = await readItem(await send(Headers['Authorization']))
  // What ShareX reads: `url` of the response, and `detail` of a refusal.
  expect([rest.URL, rest.ThumbnailURL, rest.ErrorMessage]).toEqual([
    '{json:url}',
    '{json:variants.thumb}',
    '{json:detail}',
  ])
  expect(item).toMatchObject({ filename: 'Größe.txt', variants: null })
  expect(await (await fetch(item.url)).text()).toBe('text')
  const refused = await expectProblem(await send('Bearer mbkt_wrong'), 401, 'token-malformed')
  expect(refused.detail).toMatch(/\.$/)
})

/** The fields that ShareX requires of a file: `Version` must be later than 13.7.1 for braces, `Body` and the destinations are names of its lists. */
const ShareX = Type.Object({
  Version: Type.String({ pattern: '^1[4-9]\\.' }),
  Name: Type.String(),
  DestinationType: Type.Literal('ImageUploader, TextUploader, FileUploader'),
  RequestMethod: Type.Literal('POST'),
  RequestURL: Type.String(),
  Headers: Type.Record(Type.String(), Type.String()),
  Body: Type.Literal('MultipartFormData'),
  FileFormName: Type.String(),
  URL: Type.String(),
  ThumbnailURL: Type.String(),
  ErrorMessage: Type.String(),
})

test('G45, SP1 a pair of keys for the S3 protocol is created with a token, shown once with its endpoint, and copied', async () => {
  const { server: withS3, endpoint } = await startS3Server()
  await using _server = withS3
  const bucket = uniqueName('tokens')
  const scopes = ['tokens:manage', 'media:read', 'media:write'].flatMap((scope) => ['--scope', scope])
  const own = await makeToken(withS3, '--bucket', bucket, ...scopes)
  await using guest = await visit(browser, withS3, { hash: '#tokens' })
  const { page } = guest
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await guest.signIn(own.token)
  const dialog = page.getByRole('dialog')
  await guest.button(tokens.create).click()
  await dialog.getByLabel(tokens.scopeNames['media:write'] ?? '').check()
  await dialog.getByLabel(tokens.s3).check()
  await dialog.getByRole('button', { name: tokens.create }).click()
  const copied = async (label: string) => {
    const shown = await dialog.getByLabel(label, { exact: true }).inputValue()
    await dialog.getByRole('button', { name: tokens.copyField(label), exact: true }).click()
    await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(shown)
    return shown
  }
  expect(await copied(tokens.endpoint)).toBe(endpoint)
  const pair = {
    accessKeyId: await copied(tokens.accessKeyId),
    secretAccessKey: await copied(tokens.secretAccessKey),
  }
  const put = await sendSigned(pair, `${endpoint}/${bucket}/by-keys.txt`, { method: 'PUT', body: 'by keys' })
  expect(put.status).toBe(200)
  await expectAccessible(guest, 'keys')
  await page.keyboard.press('Escape')
  await expect.poll(() => page.content()).not.toContain(pair.secretAccessKey)

  // Without the box, and where the service has no such port.
  await guest.button(tokens.create).click()
  await dialog.getByRole('button', { name: tokens.create }).click()
  await dialog.getByLabel(tokens.newToken).waitFor()
  expect(await dialog.getByLabel(tokens.accessKeyId).count()).toBe(0)
  const { guest: other, dialog: without } = await opened('media:read')
  await using _other = other
  const asked = other.page.waitForResponse('**/sign-in.json')
  await other.button(tokens.create).click()
  expect(await (await asked).json()).toEqual({
    issuer: null,
    s3: null,
    sizes: ['thumb=400', 'medium=1600'],
  })
  await without.getByRole('button', { name: tokens.create }).waitFor()
  expect(await without.getByLabel(tokens.s3).count()).toBe(0)
})
