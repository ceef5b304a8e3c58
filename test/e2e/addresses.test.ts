import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { upload } from '../harness/upload.ts'
import { type Visit, visit } from './visit.ts'

let browser: Browser
let server: SharedServer
let ids: readonly string[]

/** A new bucket with `count` files, and their ids by number, from 1. */
async function filled(count: number): Promise<[SharedServer, readonly string[]]> {
  const filling = await sharedServer()
  const known = ['']
  for (let item = 1; item <= count; item++)
    known.push((await upload(filling, `Text ${item}.`, { name: `file-${item}.txt` })).id)
  return [filling, known]
}

beforeAll(async () => {
  const [filling, known] = await filled(23)
  server = filling
  ids = known
  browser = await sharedBrowser()
})

const hashOf = ({ page }: Visit) => new URL(page.url()).hash

/** Changes the URL of the open page, as by typing. */
async function typed(guest: Visit, hash: string): Promise<string> {
  await guest.page.goto(`${new URL(guest.page.url()).origin}/${hash}`)
  return hash
}

/** Waits until the viewer shows the content and the name of the file. */
async function shows({ page }: Visit, number: number): Promise<void> {
  const dialog = page.getByRole('dialog', { name: strings.viewer.label(`file-${number}.txt`), exact: true })
  await dialog.getByText(`Text ${number}.`, { exact: true }).filter({ visible: true }).waitFor()
}

const gone = ({ page }: Visit) => page.getByRole('dialog', { name: strings.viewer.deleted, exact: true })

describe('a URL with an item', () => {
  test('G18 shows the item, wherever the page of the address is, with steps to its neighbours', async () => {
    await using guest = await visit(browser, server, { hash: `#page=1&item=${ids[15]}` })
    await guest.signIn(server.token)
    await shows(guest, 15)
    await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[15]}`)
    for (const [page, number] of [
      [1, 4],
      [2, 3],
      [2, 12],
      [3, 2],
      [1, 22],
    ] as const) {
      await typed(guest, `#page=${page}&item=${ids[number]}`)
      await shows(guest, number)
      await guest.button(strings.viewer.next).waitFor()
      await shows(guest, number)
      await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[number]}`)
    }
    await guest.button(strings.close).click()
    await expect.poll(() => hashOf(guest)).toBe('#order=oldest')
  })

  test('M3 arrow keys step to the next and the previous file; an unknown item does not change the address, and a button leads back', async () => {
    await using guest = await visit(browser, server, { hash: `#order=oldest&item=${ids[10]}` })
    await guest.signIn(server.token)
    await shows(guest, 10)
    await guest.page.keyboard.press('ArrowRight')
    await shows(guest, 11)
    await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[11]}`)
    await guest.page.keyboard.press('ArrowLeft')
    await shows(guest, 10)
    await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[10]}`)

    const hash = await typed(guest, '#order=oldest&item=zzzz')
    await gone(guest).getByText(strings.viewer.deleted).waitFor()
    await expect.poll(() => hashOf(guest)).toBe(hash)
    await guest.button(strings.back).click()
    await guest.files.getByText('file-1.txt', { exact: true }).waitFor()
    await expect.poll(() => hashOf(guest)).toBe('#order=oldest')
  })
})

test('M2 a file that others deleted is reported as deleted', async () => {
  const [own, known] = await filled(12)
  await using guest = await visit(browser, own)
  await guest.signIn(own.token)
  await guest.files.getByText('file-3.txt').waitFor()
  await own.request(`/api/media/${known[3]}`, { method: 'DELETE' })
  // The page still lists it.
  await guest.files.getByRole('link', { name: 'file-3.txt' }).click()
  await gone(guest).waitFor()
  await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${known[3]}`)
  await guest.button(strings.back).click()
  await guest.files.getByText('file-3.txt').waitFor({ state: 'detached' })
  await guest.files.getByText('file-11.txt').waitFor()
})
