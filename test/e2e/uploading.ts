import { randomUUID } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { type Client, createClient } from '../../packages/client/src/index.ts'
import { strings } from '../../packages/gallery/src/strings.ts'
import type { SharedServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { type Visit, visit, type Where } from './visit.ts'

/** A visit that is signed in to a new bucket. */
export interface Guest extends Visit {
  readonly bucket: string
  readonly token: string
  readonly client: Client
}

export async function newGuest(browser: Browser, server: SharedServer, where: Where = {}): Promise<Guest> {
  const bucket = `b-${randomUUID()}`
  const { token } = await makeToken(server, '--bucket', bucket)
  const guest = await visit(browser, server, where)
  await guest.signIn(token)
  return { ...guest, bucket, token, client: createClient({ url: server.url, token }) }
}

/** The names in the listing, in its order. */
export async function namesOf({ client }: Guest): Promise<string[]> {
  const names = new Map<string, string>()
  for await (const { url, filename } of client.items()) names.set(url, filename ?? '')
  const listed: string[] = []
  for await (const url of client.media()) listed.push(names.get(url) ?? `unknown: ${url}`)
  return listed
}

export const tray = ({ page }: Visit) => page.getByRole('region', { name: strings.uploads.label })

/** Waits until the list of uploads has this heading. */
export const uploadHeading = (guest: Visit, words: string) =>
  tray(guest).getByRole('heading', { name: words, exact: true }).waitFor({ timeout: 60_000 })
