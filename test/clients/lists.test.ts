import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Locator } from 'playwright-core'
import sharp from 'sharp'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { root } from '../architecture/sources.ts'
import { blocksOf } from '../docs/blocks.ts'
import { quarters, uploadPicture, variantUrl } from '../harness/pictures.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readLink } from '../harness/wire.ts'
import { isComplete } from './install.ts'
import { openStage, type Stage } from './pages.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage({ MEDIABUCKET_VARIANTS: '256,640' })
  for (let index = 1; index <= 45; index += 1)
    await upload(stage.server, `${index}`, { name: `${index}.txt` })
})
afterAll(() => stage[Symbol.asyncDispose]())

describe('C2 lists on a page of another origin', () => {
  test('K4 TanStack Query lists all items, newest first', async () => {
    await using opened = await stage.open('TanStack Query')
    const { page } = opened
    for (const count of [20, 40]) {
      await expect.poll(() => page.locator('li').count()).toBe(count)
      await page.locator('button').click()
    }
    await expect.poll(() => page.locator('li').count()).toBe(45)
    const names = await page.locator('li').allTextContents()
    expect(names).toEqual(Array.from({ length: 45 }, (_, index) => `${45 - index}.txt`))
    await expect.poll(() => page.locator('button').isDisabled()).toBe(true)
  })

  test('L2 laravel-vue-pagination shows the pages of the listing and changes between them', async () => {
    await using opened = await stage.open('laravel-vue-pagination')
    const { page } = opened
    const active = () => page.locator('.page-item.active').textContent()
    await expect.poll(() => page.locator('#urls li').count()).toBe(10)
    await expect.poll(active).toMatch(/^1\b/)
    await page.locator('.page-link', { hasText: /^5/ }).click()
    await expect.poll(() => page.locator('#urls li').count()).toBe(5)
    await expect.poll(active).toMatch(/^5\b/)
    const last = (await page.locator('#urls li:last-child').textContent()) ?? ''
    expect(await (await fetch(last)).text()).toBe('45')
  })

  test('V1, V13 a page shows pictures with srcset, and their ThumbHash before', async () => {
    const { id } = await uploadPicture(stage.server, quarters(1200, 3000).webp().toBuffer(), 'image/webp')
    for (const name of ['thumb', 'medium']) await fetch(variantUrl(stage.server, id, name))
    await using opened = await stage.open('Pictures')
    const image = opened.page.locator('img')
    const srcset = (await image.getAttribute('srcset')) ?? ''
    for (const candidate of srcset.split(', ')) {
      const [url = '', width = ''] = candidate.split(' ')
      const { info } = await sharp(await (await fetch(url)).arrayBuffer()).toBuffer({
        resolveWithObject: true,
      })
      expect([url, `${info.width}w`]).toEqual([url, width])
    }
    expect(await image.getAttribute('style')).toContain('data:image/png;base64,')
    await expect
      .poll(() => opened.page.evaluate("document.querySelector('img').naturalWidth"))
      .toBeGreaterThan(0)
  })
})

const StoredItems = Type.Object({ data: Type.Array(Type.Object({ id: Type.String() })) })

/** Stores 1,003 items in a bucket of their own. Returns its token and their ids, newest first. */
async function fillPages() {
  const { token, authorization } = await makeToken(stage.server, '--bucket', 'pages')
  const ids: string[] = []
  for (let first = 0; first < 1003; first += 100) {
    const body = new FormData()
    for (let index = first; index < Math.min(first + 100, 1003); index += 1)
      body.append('file', new File([`${index}`], `${index}.txt`, { type: 'text/plain' }))
    const sent = { method: 'POST', body, headers: { authorization } }
    const { data } = Value.Parse(StoredItems, await (await stage.server.request('/api/media', sent)).json())
    ids.push(...data.map(({ id }) => id))
  }
  return { token, authorization, ids: ids.toReversed() }
}
let pages: ReturnType<typeof fillPages> | undefined

/** Walks the pages from the first to the last one, of `count` items; returns the ids that they showed. */
async function walk(count: number, idsOf: () => Promise<string[]>, next: Locator): Promise<string[]> {
  const all: string[] = []
  for (;;) {
    // The earlier page is shown until the next one has arrived.
    all.push(
      ...(await until('the next page', async () => {
        const ids = await idsOf()
        return ids.length > 0 && !ids.every((id) => all.includes(id)) && ids
      })),
    )
    if (all.length >= count) break
    await next.click()
  }
  await expect.poll(() => next.isEnabled()).toBe(false)
  return all
}

/** What the service has of an item of these pages: its caption, or the status if it has none. */
async function captionOf(id: string | undefined) {
  const { authorization } = (await pages) ?? {}
  const response = await stage.server.request(`/api/media/${id}`, {
    headers: { authorization: `${authorization}` },
  })
  return response.ok ? Value.Parse(Captioned, await response.json()).caption : response.status
}
const Captioned = Type.Object({ caption: Type.Union([Type.String(), Type.Null()]) })

describe('K18 admin panels on a page of another origin, with the providers of docs/recipes.md', () => {
  test('Refine shows all of 1,003 items once, edits a caption and deletes an item', async () => {
    pages ??= fillPages()
    const { token, ids } = await pages
    await using opened = await stage.open('Refine', token)
    const { page } = opened
    const shown = () =>
      page.locator('li').evaluateAll((rows) => rows.map((row) => row.getAttribute('id') ?? ''))
    expect(await walk(ids.length, shown, page.locator('#next'))).toEqual(ids)

    const [edited, deleted] = [ids.at(-1), ids.at(-2)]
    page.on('dialog', (dialog) => dialog.accept('a caption'))
    await page.locator(`[id="${edited}"] >> text=Edit`).click()
    await page.locator(`[id="${edited}"] >> text=a caption`).waitFor()
    await expect.poll(() => captionOf(edited)).toBe('a caption')
    await page.locator(`[id="${deleted}"] >> text=Delete`).click()
    await page.locator(`[id="${deleted}"]`).waitFor({ state: 'detached' })
    await expect.poll(() => captionOf(deleted)).toBe(404)
    ids.splice(-2, 1)
  })

  // `npm run test:clients` installs react-admin.
  test.runIf(isComplete)('react-admin does the same', async () => {
    pages ??= fillPages()
    const { token, ids } = await pages
    await using opened = await stage.open('react-admin', token)
    const { page } = opened
    const shown = () =>
      page.locator('td.column-id').evaluateAll((cells) => cells.map((cell) => cell.textContent))
    expect(await walk(ids.length, shown, page.getByLabel('Go to next page'))).toEqual(ids)

    const id = ids.at(-1) ?? ''
    const rowOf = () => page.locator('tr', { hasText: id })
    await rowOf().locator('.column-filename').click()
    await page.getByLabel('Caption').fill('of an editor')
    await page.getByRole('button', { name: 'Save' }).click()
    await rowOf().getByText('of an editor').waitFor()
    await expect.poll(() => captionOf(id)).toBe('of an editor')
    await rowOf().locator('.column-filename').click()
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Confirm' }).click()
    await rowOf().waitFor({ state: 'detached' })
    await expect.poll(() => captionOf(id)).toBe(404)
    ids.pop()
  })

  test.each(['Refine', 'react-admin'])('the provider of %s has fewer than 30 lines', (heading) => {
    const section = readFileSync(join(root, 'docs/recipes.md'), 'utf8').split(`## ${heading}\n`)[1] ?? ''
    const [provider = ''] =
      /^async function send\([\s\S]*?^const dataProvider = [\s\S]*?^}$/m.exec(section) ?? []
    expect(provider.split('\n').length).toBeLessThan(30)
    expect(provider).toContain('per_page')
  })
})

async function nextLoader() {
  const code =
    blocksOf('docs/start/nextjs.md').find((block) => block.code.includes('function loader'))?.code ?? ''
  return (await import(`data:text/javascript,${encodeURIComponent(code)}`)).default
}

/** `npm run test:clients` installs Next.js, of which this is the part that writes an `<img>`. */
test.runIf(isComplete)(
  'V18 next/image writes a srcset of widths with the loader of docs/start/nextjs.md',
  async () => {
    const { getImageProps } = createRequire(import.meta.url)('next/image')
    const { url } = await uploadPicture(stage.server, quarters(800, 400).webp().toBuffer(), 'image/webp')
    const image = { src: url, alt: '', width: 256, height: 128, loader: await nextLoader() }
    const { props } = Value.Parse(ImageProps, getImageProps(image))
    expect(props.srcSet).toBe(`${url}?w=256 1x, ${url}?w=640 2x`)
    for (const [address, width] of [
      [`${url}?w=256`, 256],
      [props.src, 640],
    ] as const)
      expect((await sharp(await (await fetch(address)).arrayBuffer()).metadata()).width).toBe(width)
  },
)

const ImageProps = Type.Object({ props: Type.Object({ src: Type.String(), srcSet: Type.String() }) })

test('H7, V18 the loader of docs/start/nextjs.md selects a picture for each width, also by one signed link', async () => {
  const loader = await nextLoader()
  const { id, url } = await uploadPicture(stage.server, quarters(800, 400).webp().toBuffer(), 'image/webp')
  const link = await stage.server.request(`/api/media/${id}/links`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ variant: '*' }),
  })
  for (const src of [url, (await readLink(link)).url])
    for (const width of [256, 640]) {
      const response = await fetch(loader({ src, width, quality: 75 }))
      expect([response.status, (await sharp(await response.arrayBuffer()).metadata()).width]).toEqual([
        200,
        width,
      ])
    }
})
