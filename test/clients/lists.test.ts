import { createRequire } from 'node:module'
import sharp from 'sharp'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { blocksOf } from '../docs/blocks.ts'
import { quarters, uploadPicture, variantUrl } from '../harness/pictures.ts'
import { upload } from '../harness/upload.ts'
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
    expect(await page.locator('button').isDisabled()).toBe(true)
  })

  test('L2 laravel-vue-pagination shows the pages of the listing and changes between them', async () => {
    await using opened = await stage.open('laravel-vue-pagination')
    const { page } = opened
    const active = () => page.locator('.page-item.active').textContent()
    await expect.poll(() => page.locator('#urls li').count()).toBe(10)
    expect(await active()).toMatch(/^1\b/)
    await page.locator('.page-link', { hasText: /^5/ }).click()
    await expect.poll(() => page.locator('#urls li').count()).toBe(5)
    expect(await active()).toMatch(/^5\b/)
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

async function nextLoader() {
  const code = blocksOf('docs/widgets.md').find((block) => block.code.includes('function loader'))?.code ?? ''
  return (await import(`data:text/javascript,${encodeURIComponent(code)}`)).default
}

/** `npm run test:clients` installs Next.js, of which this is the part that writes an `<img>`. */
test.runIf(isComplete)(
  'V1 next/image writes a srcset of variants with the loader of docs/widgets.md',
  async () => {
    const { getImageProps } = createRequire(import.meta.url)('next/image')
    const { url } = await uploadPicture(stage.server, quarters(800, 400).webp().toBuffer(), 'image/webp')
    const image = { src: url, alt: '', width: 256, height: 128, loader: await nextLoader() }
    const { props } = Value.Parse(ImageProps, getImageProps(image))
    expect(props.srcSet).toBe(`${url}?variant=256 1x, ${url}?variant=640 2x`)
    for (const [address, width] of [
      [`${url}?variant=256`, 256],
      [props.src, 640],
    ] as const)
      expect((await sharp(await (await fetch(address)).arrayBuffer()).metadata()).width).toBe(width)
  },
)

const ImageProps = Type.Object({ props: Type.Object({ src: Type.String(), srcSet: Type.String() }) })

test('V1 the loader of docs/widgets.md for Next.js names a variant for each width', async () => {
  const loader = await nextLoader()
  const { url } = await uploadPicture(stage.server, quarters(800, 400).webp().toBuffer(), 'image/webp')
  for (const width of [256, 640]) {
    const response = await fetch(loader({ src: url, width, quality: 75 }))
    expect([response.status, (await sharp(await response.arrayBuffer()).metadata()).width]).toEqual([
      200,
      width,
    ])
  }
})
