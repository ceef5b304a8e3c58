import { createHash, randomBytes } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { quarters } from '../harness/pictures.ts'
import { makeToken } from '../harness/token.ts'
import { readItem, readPage } from '../harness/wire.ts'
import { isComplete } from './install.ts'
import { openStage, type Stage } from './pages.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage({ MEDIABUCKET_MAX_FILE_SIZE: '2MB' })
})
afterAll(() => stage[Symbol.asyncDispose]())

interface File {
  readonly name: string
  readonly mimeType: string
  readonly buffer: Buffer
}

const file = (name: string, size = 1000): File => ({
  name,
  mimeType: 'application/octet-stream',
  buffer: randomBytes(size),
})

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

const total = async () => (await readPage(await stage.server.request('/api/media'))).total

/** Expects that the bytes of the URL are those of the file, and that the item has its name. */
async function expectStored(url: string, sent: File): Promise<void> {
  const id = /\/media\/(\w+)/.exec(url)?.[1]
  const item = await readItem(await stage.server.request(`/api/media/${id}`))
  expect([item.filename, item.sha256]).toEqual([sent.name, sha256(sent.buffer)])
  expect(sha256(Buffer.from(await (await fetch(item.url)).arrayBuffer()))).toBe(item.sha256)
}

const shown = async (page: Page, pattern: RegExp): Promise<string> => {
  await page.locator('output', { hasText: pattern }).waitFor()
  return (await page.locator('output').textContent()) ?? ''
}

/** Where files are chosen: Dropzone has an input of its own, and FilePond replaces the one of the page. */
const choose = (page: Page, files: File | readonly File[]) =>
  page.locator('input[type=file]').setInputFiles([files].flat())

const bytesUrl = /\/media\/\w/

describe('C2, U4 widgets on a page of another origin upload', () => {
  test.each(['fetch', 'Uppy, XHR'])('%s: two files, and one that is refused', async (heading) => {
    await using opened = await stage.open(heading)
    const { page } = opened
    const files = [file('Größe 1.bin'), file('two.bin', 0)]
    await choose(page, files)
    await page.locator('li:nth-child(2)', { hasText: bytesUrl }).waitFor()
    const urls = await page.locator('li').allTextContents()
    // Uppy sends them at the same time.
    const items = await Promise.all(
      urls.map(
        async (url) =>
          (
            await readItem(
              await stage.server.request(new URL(url).pathname.replace(/^\/media\/(\w+).*/, '/api/media/$1')),
            )
          ).filename,
      ),
    )
    for (const one of files) await expectStored(urls[items.indexOf(one.name)] ?? '', one)
    await choose(page, file('large.bin', 2_100_000))
    await page.locator('li:nth-child(3)', { hasText: 'larger than the limit' }).waitFor()
  })

  test('axios as in Laravel: a file, and one that is refused', async () => {
    await using opened = await stage.open('axios')
    const one = file('one.bin')
    await choose(opened.page, one)
    await expectStored(await shown(opened.page, bytesUrl), one)
    await choose(opened.page, file('large.bin', 2_100_000))
    await shown(opened.page, /larger than the limit/)
  })

  test('T9, T10, R5, R15 Direct uploads: pictures with a token of minutes, and a text that it refuses', async () => {
    await using opened = await stage.open('Direct uploads')
    const { page } = opened
    const picture = async (name: string, side: number): Promise<File> => ({
      name,
      mimeType: 'image/png',
      buffer: await quarters(side, side).png().toBuffer(),
    })
    const pictures = [await picture('Größe.png', 20), await picture('two.png', 30)]
    for (const [index, one] of pictures.entries()) {
      await choose(page, one)
      const entry = page.locator(`li:nth-child(${index + 1})`, { hasText: bytesUrl })
      await entry.waitFor()
      await expectStored((await entry.textContent()) ?? '', one)
    }
    await choose(page, { name: 'text.png', mimeType: 'image/png', buffer: Buffer.from('no picture') })
    await page.locator('li:nth-child(3)', { hasText: 'must be one of: image/*' }).waitFor()
  })

  test('FilePond: a file is uploaded and removed', async () => {
    await using opened = await stage.open('FilePond')
    const [before, one] = [await total(), file('one.bin')]
    await choose(opened.page, one)
    const id = await shown(opened.page, /^\w{20,}$/)
    await expectStored(`/media/${id}`, one)
    await opened.page.locator('.filepond--action-revert-item-processing').click()
    await expect.poll(total).toBe(before)
    await choose(opened.page, file('large.bin', 2_100_000))
    await shown(opened.page, /larger than the limit/)
  })

  test('R4, R9 FilePond in chunks: a file is uploaded and removed', async () => {
    await using opened = await stage.open('FilePond, in chunks')
    const [before, one] = [await total(), file('Größe.bin', 300_000)]
    await choose(opened.page, one)
    await expectStored(await shown(opened.page, /\/api\/media\/\w+$/), one)
    await opened.page.locator('.filepond--action-revert-item-processing').click()
    await expect.poll(total).toBe(before)
  })

  test('Dropzone with its defaults: a file is uploaded and removed, and one is refused', async () => {
    await using opened = await stage.open('Dropzone')
    const [before, one] = [await total(), file('one.bin')]
    await choose(opened.page, one)
    await expectStored(await shown(opened.page, bytesUrl), one)
    await opened.page.locator('.dz-remove').click()
    await shown(opened.page, /removed/)
    await expect.poll(total).toBe(before)
    const writer = await makeToken(stage.server, '--bucket', 'default', '--scope', 'media:read')
    await using refused = await stage.open('Dropzone', writer.token)
    await choose(refused.page, one)
    await shown(refused.page, /media:write/)
  })
})

describe('C2, U4 editors on a page of another origin upload pictures', () => {
  /** Pastes a picture into the document of an editor. */
  const paste = (selector: string, base64: string) => `(() => {
    const bytes = Uint8Array.from(atob('${base64}'), (one) => one.charCodeAt(0))
    const data = new DataTransfer()
    data.items.add(new File([bytes], 'pasted.png', { type: 'image/png' }))
    document.querySelector('${selector}').dispatchEvent(
      new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
  })()`

  test('TinyMCE', async () => {
    await using opened = await stage.open('TinyMCE')
    const { page } = opened
    const picture = await quarters(40, 20).png().toBuffer()
    await page.waitForFunction('globalThis.tinymce?.activeEditor?.initialized')
    const frame = page.frames().find((one) => one !== page.mainFrame())
    await frame?.evaluate(paste('body', picture.toString('base64')))
    const image = page.frameLocator('.tox-edit-area iframe').locator(`img[src*="/media/"]`)
    const src = (await image.getAttribute('src')) ?? ''
    expect(sha256(Buffer.from(await (await fetch(src)).arrayBuffer()))).toBe(sha256(picture))
  })

  test.runIf(isComplete)('CKEditor', async () => {
    await using opened = await stage.open('CKEditor')
    const { page } = opened
    const picture = await quarters(40, 20).png().toBuffer()
    const isReady = "document.querySelector('.ck-editor__editable')?.ckeditorInstance?.state === 'ready'"
    await page.waitForFunction(isReady)
    await page.evaluate(paste('.ck-editor__editable', picture.toString('base64')))
    const image = page.locator(`.ck-editor__editable img[src^="${stage.server.url}/media/"]`)
    const src = (await image.getAttribute('src')) ?? ''
    expect(sha256(Buffer.from(await (await fetch(src)).arrayBuffer()))).toBe(sha256(picture))
  })
})
