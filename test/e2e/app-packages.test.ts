import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Client, createClient } from '../../packages/client/src/index.ts'
import { root } from '../architecture/sources.ts'
import { type Block, blocksOf } from '../docs/blocks.ts'
import { type BundledPages, bundleScript, serveBundledPages } from '../harness/bundled-page.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { quarters, recordPreview } from '../harness/pictures.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { startWatchedProxy } from '../harness/watched-proxy.ts'
import { violations } from './accessibility.ts'
import { dropAt } from './drop.ts'

let pages: BundledPages
let server: TestServer
beforeAll(async () => {
  pages = await serveBundledPages()
  const settings = { MEDIABUCKET_CORS_ORIGINS: pages.origin, MEDIABUCKET_VARIANTS: '640,1280' }
  server = await startServer({ ...settings, MEDIABUCKET_ADDRESS_RATE: 'off' })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

const widthsOfSizes = [400, 640, 1280, 1600]

/** Width and pixel ratio of a screen, and the width that the browser chooses. A private bucket has other URLs only. */
const shownSizes = [
  [390, 3, 1280],
  [1200, 1, 400],
  [390, 1, 400],
  [1200, 2, 640],
  [800, 1, 1280],
] as const

/** A client of a new bucket. */
async function newBucket(isPrivate: boolean) {
  const name = uniqueName('app')
  await server.command('bucket', 'create', name, ...(isPrivate ? ['--private', 'on'] : []))
  const { token } = await makeToken(server, '--bucket', name)
  return { token, client: createClient({ url: server.url, token }) }
}

/** A picture of exactly this size; `seed` distinguishes its bytes. */
const pictureOf = async (width: number, height: number): Promise<Buffer<ArrayBuffer>> =>
  Buffer.from(await quarters(width, height).jpeg().toBuffer())

const storePicture = async (client: Client, filename: string, [width, height] = [2000, 1000]) =>
  client.upload(new Blob([await pictureOf(width, height)], { type: 'image/jpeg' }), { filename })

/** A picture that Vue renders on a server, as the second example of the package for React does. */
const renderedByVue: Block = {
  line: 0,
  language: 'js',
  reason: null,
  code: `
import { createClient } from '@mediabucket/client'
import { Picture } from '@mediabucket/vue'
import { createSSRApp, h } from 'vue'
import { renderToString } from 'vue/server-renderer'

const client = createClient({ url, token })
const { data } = await client.itemPage({ order: 'newest', kind: 'image', batchSize: 1 })
const link = await client.createLink(data[0].id, { variant: '*' })
const picture = { src: link.url, widths: [400, 1600], sizes: '50vw', alt: 'The harbour' }
document.querySelector('#app').innerHTML = await renderToString(createSSRApp({ render: () => h(Picture, picture) }))`,
}

const examplesOf = (name: string) =>
  blocksOf(`packages/${name}/README.md`).filter(({ language }) => ['jsx', 'js'].includes(language))

/** For each package an app, and a picture that is rendered on a server. */
const packages = [
  { name: 'react', blocks: examplesOf('react') },
  { name: 'vue', blocks: [...examplesOf('vue'), renderedByVue] },
]

const scripts = new Map<string, Promise<string>>()
function scriptOf(name: string, block: Block | undefined): Promise<string> {
  if (block === undefined) throw new Error(`the README of ${name} has too few examples`)
  const key = `${name} ${block.line}`
  const made =
    scripts.get(key) ??
    bundleScript({
      directory: join(root, 'packages', name, 'src'),
      name: `page.${block.language}`,
      code: block.code,
    })
  scripts.set(key, made)
  return made
}

const row = (page: Page, name: string) => page.locator('li', { hasText: name })
const file = (name: string, buffer: Buffer) => ({ name, mimeType: 'image/jpeg', buffer })

/** The URLs that the browser has chosen and loaded. */
const chosenUrls = (page: Page) =>
  page
    .locator('img')
    .evaluateAll((images) =>
      images
        .filter((image) => Reflect.get(image, 'naturalWidth') > 0)
        .map((image) => `${Reflect.get(image, 'currentSrc')}`),
    )

/** The pixels of the pictures that the browser has chosen and loaded. */
async function shownWidths(page: Page): Promise<number[]> {
  const bytes = (await chosenUrls(page)).map(async (url) => (await fetch(url)).arrayBuffer())
  return await Promise.all(bytes.map(async (one) => (await sharp(await one).metadata()).width))
}

describe.each(packages)('the package $name', ({ name, blocks }) => {
  test('every example of its README is run here', () => {
    expect(blocks).toHaveLength(2)
  })

  test('U3, R6 its app uploads chosen files with progress, pauses, resumes and cancels them', async () => {
    const { token, client } = await newBucket(false)
    await using proxy = await startWatchedProxy(() => server.url)
    await using opened = await pages.open(await scriptOf(name, blocks[0]), { url: proxy.url, token })
    const { page } = opened
    expect(await violations(page)).toEqual([])
    const large = Buffer.concat([await pictureOf(200, 100), randomBytes(12_000_000)])
    await using directory = await temporaryDirectory()
    const write = async (name: string, bytes: Buffer) => {
      const path = join(directory.path, name)
      await writeFile(path, bytes)
      return path
    }
    const chosen = [await write('large.jpg', large), await write('one.jpg', await pictureOf(300, 200))]
    const reached = proxy.hold(({ offset }) => (offset ?? 0) > 0)
    await page.locator('input[type=file]').setInputFiles(chosen)
    await row(page, 'one.jpg').locator('output', { hasText: 'done' }).waitFor()
    await reached
    await row(page, 'large.jpg').getByText('Pause').click()
    await row(page, 'large.jpg').locator('output', { hasText: 'paused' }).waitFor()
    expect(await violations(page)).toEqual([])
    const progress = row(page, 'large.jpg').getByRole('progressbar', { name: 'large.jpg' })
    const value = Number(await progress.getAttribute('value'))
    expect([value > 0, value <= large.length]).toEqual([true, true])
    proxy.passed.length = 0
    await row(page, 'large.jpg').getByText('Resume').click()
    await row(page, 'large.jpg').locator('output', { hasText: 'done' }).waitFor()
    expect(proxy.chunks()[0]?.offset).toBeGreaterThan(0)

    const held = proxy.hold(({ offset }) => (offset ?? 0) > 0)
    await page.locator('input[type=file]').setInputFiles(await write('unwanted.jpg', large))
    await held
    await row(page, 'unwanted.jpg').getByText('Cancel').click()
    await row(page, 'unwanted.jpg').waitFor({ state: 'detached' })
    const names: (string | null)[] = []
    for await (const { filename } of client.items()) names.push(filename)
    expect(names.toSorted()).toEqual(['large.jpg', 'one.jpg'])
  })

  test('U7 a file that the service refuses shows the reason, and can be tried again', async () => {
    const { token } = await makeToken(server, '--bucket', uniqueName('read'), '--scope', 'media:read')
    await using opened = await pages.open(await scriptOf(name, blocks[0]), { url: server.url, token })
    const { page } = opened
    await page.locator('input[type=file]').setInputFiles(file('one.jpg', await pictureOf(30, 20)))
    await row(page, 'one.jpg').locator('output', { hasText: 'media:write' }).waitFor()
    await row(page, 'one.jpg').getByText('Try again').click()
    await row(page, 'one.jpg').locator('output', { hasText: 'media:write' }).waitFor()
  })

  test('its zone accepts files and folders that are dropped, files that are pasted, and the keyboard', async () => {
    const { token, client } = await newBucket(false)
    await using directory = await temporaryDirectory()
    const folder = join(directory.path, 'album')
    await mkdir(join(folder, 'day 1'), { recursive: true })
    await writeFile(join(folder, 'day 1/a.jpg'), await pictureOf(20, 30))
    await writeFile(join(folder, 'b.jpg'), await pictureOf(30, 30))
    await writeFile(join(folder, 'notes.txt'), 'no picture')
    await writeFile(join(folder, 'broken.jpg'), await pictureOf(10, 10))
    await writeFile(join(directory.path, 'c.jpg'), await pictureOf(40, 30))
    await using opened = await pages.open(await scriptOf(name, blocks[0]), { url: server.url, token })
    const { page } = opened
    // As if it was removed after the drop.
    await page.evaluate(`{
      globalThis.reported = []
      addEventListener('error', (event) => { reported.push(event.message); event.preventDefault() })
      const { webkitGetAsEntry } = DataTransferItem.prototype
      DataTransferItem.prototype.webkitGetAsEntry = function () {
        const entry = webkitGetAsEntry.call(this)
        if (!entry?.isDirectory || entry.name !== 'album') return entry
        const readers = Object.getPrototypeOf(entry.createReader())
        const { readEntries } = readers
        readers.readEntries = function (resolve, reject) {
          const broken = (_, refuse) => refuse(new DOMException('gone', 'NotFoundError'))
          const change = (entry) => entry.name === 'broken.jpg' && Object.defineProperty(entry, 'file', { value: broken })
          readEntries.call(this, (entries) => { entries.forEach(change); resolve(entries) }, reject)
        }
        return entry
      }
    }`)
    const zone = page.getByRole('group', { name: 'Upload pictures' })
    const { x, y } = (await zone.boundingBox()) ?? { x: 0, y: 0 }
    await dropAt(page, { x: x + 5, y: y + 5 }, [folder, join(directory.path, 'c.jpg')], () =>
      page.locator('[data-over]', { hasText: 'Drop the pictures here' }).waitFor(),
    )
    for (const path of ['album/day 1/a.jpg', 'album/b.jpg', 'c.jpg'])
      await row(page, path).locator('output', { hasText: 'done' }).waitFor()
    expect(await page.locator('li', { hasText: 'notes.txt' }).count()).toBe(0)
    expect(await page.locator('[data-over]').count()).toBe(0)
    expect(await page.evaluate('reported')).toEqual([expect.stringContaining('album/broken.jpg')])
    const paths: (string | null | undefined)[] = []
    for await (const { path } of client.items()) paths.push(path)
    expect(paths.toSorted()).toEqual(['album/b.jpg', 'album/day 1/a.jpg', null].toSorted())

    await page.keyboard.press('Tab')
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toMatch(/^Choose pictures/)
    const chooser = page.waitForEvent('filechooser')
    await page.keyboard.press('Enter')
    await (await chooser).setFiles(file('by-key.jpg', await pictureOf(20, 20)))
    await row(page, 'by-key.jpg').locator('output', { hasText: 'done' }).waitFor()

    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const base64 = (await quarters(50, 20).png().toBuffer()).toString('base64')
    await page.evaluate(`(async () => {
      const bytes = Uint8Array.from(atob('${base64}'), (character) => character.charCodeAt(0))
      await navigator.clipboard.write([new ClipboardItem({ 'image/png': new Blob([bytes], { type: 'image/png' }) })])
    })()`)
    await page.keyboard.press('Control+V')
    await row(page, '.png').locator('output', { hasText: 'done' }).waitFor()
  })

  test.each([false, true])(
    'V1, V13, H10 its app shows pictures in the size that the browser chooses, with their ThumbHash before; private: %s',
    async (isPrivate) => {
      const { token, client } = await newBucket(isPrivate)
      const { id } = await storePicture(client, 'wide.jpg')
      await client.update(id, { alt_text: 'The harbour at night' })
      // Rendering one variant records the ThumbHash.
      await (await client.get((await client.createLink(id, { variant: 'thumb' })).url)).arrayBuffer()
      const script = await scriptOf(name, blocks[0])
      for (const [width, deviceScaleFactor, expected] of isPrivate ? shownSizes.slice(0, 2) : shownSizes) {
        const context = { viewport: { width, height: 800 }, deviceScaleFactor }
        await using opened = await pages.open(script, { url: server.url, token }, { context })
        const { page } = opened
        const image = page.getByRole('img', { name: 'The harbour at night' })
        await image.waitFor()
        await expect
          .poll(() => shownWidths(page), { message: `${width} × ${deviceScaleFactor}` })
          .toEqual([expected])
        const srcset = (await image.getAttribute('srcset')) ?? ''
        expect(srcset.split(', ').map((candidate) => candidate.split(' ')[1])).toEqual(
          widthsOfSizes.map((one) => `${one}w`),
        )
        await expect.poll(() => image.getAttribute('style')).not.toContain('data:')
      }
    },
  )

  test('V20 people who ask for less motion see a size that stands still', async () => {
    const { token, client } = await newBucket(false)
    const media = await storePicture(client, 'wide.jpg')
    const properties = JSON.stringify({ media, variants: ['640', '1280'], still: 'thumb', sizes: '100vw' })
    const code = {
      react: `import { Picture } from '@mediabucket/react'
        import { createElement } from 'react'
        import { createRoot } from 'react-dom/client'
        createRoot(document.querySelector('#app')).render(createElement(Picture, ${properties}))`,
      vue: `import { Picture } from '@mediabucket/vue'
        import { createApp, h } from 'vue'
        createApp({ render: () => h(Picture, ${properties}) }).mount('#app')`,
    }
    const script = await bundleScript({
      ...{ directory: join(root, 'packages', name, 'src'), name: 'still.js' },
      code: name === 'react' ? code.react : code.vue,
    })
    for (const [reducedMotion, expected] of [
      ['reduce', 400],
      ['no-preference', 640],
    ] as const) {
      const context = { viewport: { width: 600, height: 400 }, reducedMotion }
      await using opened = await pages.open(script, { url: server.url, token }, { context })
      const { page } = opened
      await page.getByRole('img', { name: 'wide.jpg' }).waitFor()
      await expect.poll(() => shownWidths(page), { message: reducedMotion }).toEqual([expected])
      expect(await violations(page)).toEqual([])
    }
  })

  test('V13 a picture that is not loaded yet shows its ThumbHash in its place', async () => {
    const { token, client } = await newBucket(false)
    const { url } = await storePicture(client, 'wide.jpg')
    await (await fetch(`${url}?variant=thumb`)).arrayBuffer()
    await using opened = await pages.open(await scriptOf(name, blocks[0]), { url: server.url, token })
    const { page } = opened
    await page.route(/variant=/, () => undefined)
    await page.reload()
    const image = page.locator('img')
    await expect.poll(() => image.getAttribute('style')).toContain('data:image/png')
    const { width, height } = (await image.boundingBox()) ?? { width: 0, height: 0 }
    expect([width, height]).toEqual([2000, 1000])
    expect((await sharp(await image.screenshot()).metadata()).width).toBeGreaterThan(0)
    await page.unrouteAll()
  })

  test('FE2, K4 its app shows what others add and delete, and reads more', async () => {
    const { token, client } = await newBucket(false)
    for (let index = 1; index <= 25; index += 1)
      await storePicture(client, `${index}.jpg`, [20 + 2 * index, 20])
    await using opened = await pages.open(await scriptOf(name, blocks[0]), { url: server.url, token })
    const { page } = opened
    const alts = () =>
      page.locator('img').evaluateAll((images) => images.map((image) => image.getAttribute('alt')))
    await expect.poll(async () => (await alts()).length).toBe(20)
    const media = await storePicture(client, 'new.jpg', [500, 20])
    await expect
      .poll(alts)
      .toEqual(['new.jpg', ...Array.from({ length: 20 }, (_, index) => `${25 - index}.jpg`)])
    await client.delete(media.id)
    // A list that is being read again, because renders change items, has as many items as before.
    await expect.poll(alts).not.toContain('new.jpg')
    await page.getByRole('button', { name: 'More pictures' }).click()
    await expect.poll(alts).toEqual(Array.from({ length: 25 }, (_, index) => `${25 - index}.jpg`))
    expect(await page.getByRole('button', { name: 'More pictures' }).count()).toBe(0)
    expect(await violations(page)).toEqual([])
  })

  test.each([false, true])(
    'V18, H7 its second example shows a picture by one link, as rendered on a server; private: %s',
    async (isPrivate) => {
      const { token, client } = await newBucket(isPrivate)
      const { id } = await storePicture(client, 'wide.jpg')
      const headers = { authorization: `Bearer ${token}` }
      await recordPreview((path) => server.request(path, { headers }), id)
      for (const [width, expected] of [
        [600, 400],
        [1200, 1600],
      ] as const) {
        const context = { viewport: { width, height: 800 } }
        const script = await scriptOf(name, blocks[1])
        await using opened = await pages.open(script, { url: server.url, token }, { context })
        await expect.poll(() => shownWidths(opened.page)).toEqual([expected])
        const addresses = await opened.page
          .locator('img')
          .evaluate((image) => `${Reflect.get(image, 'srcset')}, ${Reflect.get(image, 'src')}`)
        const links = new Set(addresses.split(', ').map((one) => one.replace(/[?&]w=\d+.*/, '')))
        expect([links.size, [...links][0]?.includes('signature=')]).toEqual([1, true])
      }
    },
  )
})
