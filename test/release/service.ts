import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { expect } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { quarters } from '../harness/pictures.ts'
import { readItem, readPage } from '../harness/wire.ts'

/** A service that was started as a user starts it. */
export interface StartedService extends AsyncDisposable {
  readonly url: string
  /** Empty unless this is the first start. */
  readonly token: string
}

/** Starts a command that serves, and waits until it is ready. Disposal stops it with SIGTERM, and checks that it exits with 0. */
export async function startCommand(
  [program = '', ...args]: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd = '/',
): Promise<StartedService> {
  const settings = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', MEDIABUCKET_PORT: '0', ...env }
  const child = spawn(program, args, { cwd, env: settings, stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = new Promise<number | null>((done) => child.once('exit', done))
  let printed = ''
  child.stderr.on('data', (chunk) => {
    printed += chunk
  })
  await new Promise<void>((done, fail) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      printed += `${line}\n`
      // The last line, with and without a new token.
      if (/token create|curl .*\/api\/media$/.test(line)) done()
    })
    void exited.then((code) => fail(new Error(`the service exited with ${code}: ${printed}`)))
  })
  return {
    url: /ready at (\S+)/.exec(printed)?.[1] ?? '',
    token: /mbkt_\w+/.exec(printed)?.[0] ?? '',
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      expect(await exited).toBe(0)
    },
  }
}

/** A service, and a token for it. */
type Access = Pick<StartedService, 'url' | 'token'>

/** Uploads a picture, expects it to be the item of this number in the list, and opens its thumbnail. Returns its id. */
export async function uploadPicture({ url, token }: Access, number: number): Promise<string> {
  const headers = { authorization: `Bearer ${token}` }
  const sent = await fetch(`${url}/api/media`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'image/png' },
    body: new Uint8Array(await quarters(60, 40).png().toBuffer()),
  })
  expect(sent.status).toBe(201)
  const item = await readItem(sent)
  const { data, total } = await readPage(await fetch(`${url}/api/media`, { headers }))
  expect([total, data.at(-1)]).toEqual([number, item.url])
  const thumbnail = await fetch(`${url}/media/${item.id}?variant=thumb`)
  expect([thumbnail.status, thumbnail.headers.get('content-type')]).toEqual([200, 'image/webp'])
  return item.id
}

/** Uploads the first picture, and opens the gallery in a browser. Returns the id of the picture. */
export async function useService({ url, token }: Access): Promise<string> {
  const id = await uploadPicture({ url, token }, 1)
  const context = await (await sharedBrowser()).newContext()
  try {
    const page = await context.newPage()
    await page.goto(url)
    await page.getByLabel(strings.signIn.token, { exact: true }).fill(token)
    await page.keyboard.press('Enter')
    await page.locator('.timeline .tile img').first().waitFor()
  } finally {
    await context.close()
  }
  return id
}

/** Whether a file is still served. */
export const isServed = async ({ url }: Pick<StartedService, 'url'>, id: string): Promise<boolean> =>
  (await fetch(`${url}/media/${id}`)).status === 200
