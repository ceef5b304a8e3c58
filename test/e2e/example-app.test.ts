import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type App, startApp } from '../../demo/app/app.ts'
import { createClient } from '../../packages/client/src/index.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { quarters } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

const Token = Type.Object({ token: Type.String() })
const Items = Type.Object({ data: Type.Array(Type.Object({ id: Type.String(), url: Type.String() })) })
/** The members of an event that the test compares. */
const Event = Type.Object({
  actor: Type.Object({
    user: Type.Object({ uid: Type.String() }),
    idp: Type.Object({ name: Type.String() }),
  }),
  file: Type.Object({ uid: Type.String(), name: Type.String() }),
})

let app: App
let server: TestServer
beforeAll(async () => {
  app = await startApp(0, () => server.url)
  server = await startServer(app.mediaSettings)
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await app[Symbol.asyncDispose]()
})

/** A browser of its own, in which the user is signed in at the app, on a page of another origin than the service. */
async function signIn(user: string) {
  const context = await (await sharedBrowser()).newContext()
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  await page.goto(`${app.url}/?share=600`)
  await page.getByLabel('User').fill(user)
  await page.getByLabel('Password').fill(`${user}-password`)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByLabel('Add pictures').waitFor()
  const response = await page.evaluate(
    "fetch('/media-token', { method: 'POST' }).then((response) => response.json())",
  )
  const { token } = Value.Parse(Token, response)
  return {
    page,
    token,
    headers: { authorization: `Bearer ${token}` },
    [Symbol.asyncDispose]: () => context.close(),
  }
}

describe('the example app', () => {
  test('C1 a page of a configured origin can read the 431 problem of a request with a header that is too long', async () => {
    await using anna = await signIn('anna')
    const read = `fetch(${JSON.stringify(`${server.url}/api/media`)}, { method: 'POST', headers: { 'x-long': 'x'.repeat(17_000) }, body: 'y'.repeat(1_000_000) })
      .then(async (response) => [response.status, (await response.json()).code], String)`
    expect(await anna.page.evaluate(read)).toEqual([431, 'headers-too-large'])
  })

  test('J1, J4, H1, H7, Y1 two users have private buckets; one shares a picture by a link that expires; the audit log shows all', async () => {
    await using anna = await signIn('anna')
    await using ben = await signIn('ben')
    for (const [{ page }, name] of [
      [anna, 'harbour.png'],
      [ben, 'garden.png'],
    ] as const) {
      await page.getByLabel('Add pictures').setInputFiles({
        name,
        mimeType: 'image/png',
        buffer: await quarters(200, 100).png().toBuffer(),
      })
      const picture = page.getByRole('img', { name })
      await picture.waitFor()
      await expect
        .poll(() => page.evaluate("document.querySelector('img')?.naturalWidth ?? 0"))
        .toBeGreaterThan(0)
      await expect.poll(() => page.getByRole('img').count()).toBe(1)
    }

    // Neither user can see anything of the other.
    const items = async ({ headers }: typeof anna) =>
      Value.Parse(Items, await (await fetch(`${server.url}/api/items`, { headers })).json()).data
    const [[ofAnna, ...more], ofBen] = [await items(anna), await items(ben)]
    expect([more, ofBen.length]).toEqual([[], 1])
    const { id = '', url = '' } = ofAnna ?? {}
    for (const [method, path] of [
      ['GET', `/api/media/${id}`],
      ['DELETE', `/api/media/${id}`],
      ['POST', `/api/media/${id}/links`],
      ['GET', `/media/${id}`],
      ['GET', `/media/${id}?variant=thumb`],
    ]) {
      const body = method === 'POST' ? { body: '{}' } : {}
      const type = { 'content-type': 'application/json' }
      const init = { ...(method && { method }), ...body, headers: { ...ben.headers, ...type } }
      await expectProblem(await fetch(`${server.url}${path}`, init), 404, 'media-unknown')
    }
    await expectProblem(await fetch(url), 404, 'media-unknown')

    // A link works without a token.
    await anna.page.getByRole('button', { name: 'Share' }).click()
    const link = new URL((await anna.page.locator('output a').getAttribute('href')) ?? '')
    const shared = await fetch(link)
    expect([shared.status, shared.headers.get('content-type')]).toEqual([200, 'image/png'])
    const left = Number(link.searchParams.get('expires')) - Date.now() / 1000
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThan(601)
    // Until it expires.
    const brief = createClient({ url: server.url, token: anna.token })
    const { url: expiring } = await brief.createLink(id, { expiresIn: 1 })
    await until('the link has expired', async () => (await fetch(expiring)).status === 403)
    await expectProblem(await fetch(expiring), 403, 'link-expired')

    const printed = async (action: string) =>
      (await server.command('audit', '--json', '--action', action)).stdout
        .trim()
        .split('\n')
        .map((line) => Value.Parse(Event, JSON.parse(line)))
    const uploads = await printed('upload')
    expect(uploads.map(({ actor, file }) => [actor.user.uid, actor.idp.name, file.name])).toEqual([
      ['anna', app.url, 'harbour.png'],
      ['ben', app.url, 'garden.png'],
    ])
    // Of the links, only the shared ones: those of the thumbnails are no more than what a list shows.
    const links = await printed('link')
    expect(links.map(({ actor, file }) => [actor.user.uid, file.uid])).toEqual([
      ['anna', id],
      ['anna', id],
    ])
    expect(JSON.stringify(links)).not.toContain('signature')
  })

  test('FE6 a picture that the user adds in another browser appears without a reload', async () => {
    await using first = await signIn('anna')
    await using second = await signIn('anna')
    await second.page.getByLabel('Add pictures').setInputFiles({
      name: 'lighthouse.png',
      mimeType: 'image/png',
      buffer: await quarters(100, 100).png().toBuffer(),
    })
    await first.page.getByRole('img', { name: 'lighthouse.png' }).waitFor()
  })
})
