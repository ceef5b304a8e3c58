import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { audience, startIssuer, type TestIssuer } from '../harness/issuer.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { expectAccessible } from './accessibility.ts'
import { type Visit, visit } from './visit.ts'

let browser: Browser
let issuer: TestIssuer
let server: TestServer
beforeAll(async () => {
  browser = await sharedBrowser()
  // So short that the page renews its token before each request.
  issuer = await startIssuer({ tokenLifetime: 29 })
  server = await startGallery(issuer)
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

async function startGallery(with_: TestIssuer) {
  const started = await startServer({
    ...with_.settings,
    MEDIABUCKET_JWT_CREATE_BUCKETS: 'on',
    MEDIABUCKET_OIDC_CLIENT_ID: 'gallery',
    MEDIABUCKET_OIDC_PARAMETERS: `resource=${encodeURIComponent(audience)}`,
  })
  with_.allowRedirect(`${started.url}/`)
  return started
}

const stored = `JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])`

async function signIn({ page, button }: Visit, user: string, { url } = issuer): Promise<void> {
  await button(strings.signIn.withIssuer(new URL(url).host)).click()
  await page.getByLabel('User').fill(user)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('button', { name: strings.header.signOut }).waitFor()
}

/** With anything but letters, the name of the bucket shows that the subject has arrived unchanged. */
const bucketOf = ({ page }: Visit, name: string) => page.getByRole('heading', { name })

/** Leaves the page of the issuer, and returns the state of the sign-in that it belongs to. */
async function pendingState({ page }: Visit): Promise<string | undefined> {
  await page.goBack()
  const pending = await page.evaluate(`sessionStorage.getItem('mediabucket.sign-in /')`)
  return /"state":"([^"]+)"/.exec(String(pending))?.[1]
}

test('G25, G6 a person signs in with the issuer; the code is in no address, and a reload keeps the session', async () => {
  await using guest = await visit(browser, server, { alsoAsked: issuer.url, hash: '' })
  const { page } = guest
  await signIn(guest, 'anna')
  await bucketOf(guest, 'user-anna').waitFor()
  await expect.poll(() => page.url()).toBe(`${server.url}/`)
  const codes = guest.requests.flatMap((url) => new URL(url).searchParams.get('code') ?? [])
  expect(codes).toHaveLength(1)
  await page.reload()
  await bucketOf(guest, 'user-anna').waitFor()
  // G26, J3 what needs scopes that no JWT can have is not offered.
  await guest.button(strings.settings.label).click()
  await page.getByLabel(strings.settings.language).waitFor()
  for (const section of ['tokens', 'webhooks'] as const)
    await expect.poll(() => page.getByRole('link', { name: strings.sections[section] }).count()).toBe(0)
  await expect.poll(() => guest.button(strings.listing.ask).count()).toBe(0)
  await page.keyboard.press('Escape')
  expect(server.stderr()).not.toContain(codes[0])
  expect(server.stderr()).not.toContain('eyJ')
  await page.goBack()
  expect(page.url()).not.toContain('code=')
})

test('G25 the token is renewed before it expires, in several tabs; signing out removes all of it, and revokes the refresh token', async () => {
  await using guest = await visit(browser, server, { alsoAsked: issuer.url, hash: '' })
  await signIn(guest, 'bob')
  await bucketOf(guest, 'user-bob').waitFor()
  const renewals = () => guest.requests.filter((url) => url === `${issuer.url}/token`).length
  await expect.poll(renewals).toBeGreaterThan(2)
  const second = await guest.context.newPage()
  await second.goto(server.url)
  await second.getByRole('heading', { name: 'user-bob' }).waitFor()
  await guest.page.reload()
  await bucketOf(guest, 'user-bob').waitFor()
  const before = String(await guest.page.evaluate(stored))
  expect(before).toContain('eyJ')
  const refreshToken = /refreshToken[\\":]+([\w-]+)/.exec(before)?.[1] ?? ''
  const refresh = () =>
    fetch(`${issuer.url}/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        client_id: 'gallery',
        refresh_token: refreshToken,
      }),
    })
  expect((await refresh()).status).toBe(200)
  await guest.button(strings.header.signOut).click()
  for (const page of [guest.page, second]) {
    await page.getByText(strings.signIn.signedOut).waitFor()
    expect(await page.evaluate(stored)).not.toMatch(/eyJ|refreshToken/)
  }
  await until('the refresh token is revoked', async () => (await refresh()).status === 400)
})

test('G25 without refresh tokens, the session ends when the token expires', async () => {
  await using brief = await startIssuer({ refreshTokens: false })
  await using own = await startGallery(brief)
  await using guest = await visit(browser, own, { alsoAsked: brief.url, hash: '', movesClock: true })
  await signIn(guest, 'carl', brief)
  await guest.context.clock.fastForward(301_000)
  await guest.page.getByText(strings.signIn.expired).waitFor()
  expect(await guest.page.evaluate(stored)).not.toContain('eyJ')
})

test('G25 a page that was opened before the service has reached the issuer signs in when it has', async () => {
  await using late = await startIssuer()
  late.setReachable(false)
  await using own = await startGallery(late)
  await using guest = await visit(browser, own, { alsoAsked: late.url, hash: '' })
  await guest.button(strings.signIn.withIssuer(new URL(late.url).host)).waitFor()
  late.setReachable(true)
  await signIn(guest, 'erin', late)
  await bucketOf(guest, 'user-erin').waitFor()
})

test('G25 a response that this tab has not requested is ignored, and a refusal is shown', async () => {
  await using guest = await visit(browser, server, { alsoAsked: issuer.url, hash: '' })
  const { page } = guest
  await page.goto(`${server.url}/?code=stolen&state=x`)
  await guest.button(strings.signIn.submit).waitFor()
  await expect.poll(() => page.url()).toBe(`${server.url}/`)
  for (const query of ['code=stolen', 'error=access_denied&error_description=x']) {
    await page.goto(`${server.url}/?${query}`)
    await guest.button(strings.signIn.submit).waitFor()
    await expect.poll(() => page.url()).toBe(`${server.url}/`)
  }
  // With the state of another sign-in.
  await guest.button(strings.signIn.withIssuer(new URL(issuer.url).host)).click()
  await page.getByLabel('User').waitFor()
  await page.goto(`${server.url}/?code=stolen&state=x`)
  await guest.button(strings.signIn.submit).waitFor()
  expect(guest.requests.filter((url) => url.endsWith('/token'))).toEqual([])

  await guest.button(strings.signIn.withIssuer(new URL(issuer.url).host)).click()
  await page.getByLabel('User').waitFor()
  const state = await pendingState(guest)
  await page.goto(`${server.url}/?error=access_denied&state=${state}&iss=${encodeURIComponent(issuer.url)}`)
  await page.getByText(strings.signIn.issuerFailed).waitFor()
  await expect.poll(() => page.url()).toBe(`${server.url}/`)
})

test('G25 after a failed sign-in, the session of another tab is continued', async () => {
  await using guest = await visit(browser, server, { alsoAsked: issuer.url, hash: '' })
  const { page } = guest
  await guest.button(strings.signIn.withIssuer(new URL(issuer.url).host)).click()
  await page.getByLabel('User').waitFor()
  const other = await guest.context.newPage()
  await other.goto(server.url)
  await other.getByRole('checkbox').check()
  await other.getByRole('button', { name: strings.signIn.withIssuer(new URL(issuer.url).host) }).click()
  await other.getByLabel('User').fill('dora')
  await other.getByRole('button', { name: 'Continue' }).click()
  await other.getByRole('heading', { name: 'user-dora' }).waitFor()
  const state = await pendingState(guest)
  await page.goto(`${server.url}/?error=access_denied&state=${state}&iss=${encodeURIComponent(issuer.url)}`)
  await bucketOf(guest, 'user-dora').waitFor()
})

test('G2, G25 the policy of the page allows requests to the issuer, and nothing else of other origins', async () => {
  const { headers } = await fetch(`${server.url}/`)
  const policy = headers.get('content-security-policy') ?? ''
  expect(policy).toContain(`connect-src 'self' ${issuer.url};`)
  expect(policy.split(issuer.url)).toHaveLength(2)
  const response = await fetch(`${server.url}/sign-in.json`)
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(await response.json()).toMatchObject({
    issuer: { name: new URL(issuer.url).host, client_id: 'gallery' },
  })
})

test('G25 the sign-in with an issuer is accessible, on phones and desktops', async () => {
  await using guest = await visit(browser, server, { hash: '' })
  await guest.button(strings.signIn.withIssuer(new URL(issuer.url).host)).waitFor()
  await expectAccessible(guest, 'sign-in')
})
