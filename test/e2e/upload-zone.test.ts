import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root } from '../architecture/sources.ts'
import { type BundledPages, bundleScript, serveBundledPages } from '../harness/bundled-page.ts'

let pages: BundledPages
let script: string
beforeAll(async () => {
  pages = await serveBundledPages()
  script = await bundleScript({
    directory: join(root, 'packages/client/src'),
    name: 'page.js',
    code: `
import { watchUploadZone } from '@mediabucket/client/dom'

globalThis.over = []
globalThis.files = []
globalThis.stop = watchUploadZone(document.querySelector('main'), { multiple: true, wholePage: false }, {
  onFiles: (named) => files.push(...named.map(({ filename }) => filename)),
  onOver: (isOver) => over.push(isOver),
})
globalThis.carrying = (text) => {
  const data = new DataTransfer()
  if (text !== '') data.setData('text/plain', text)
  data.items.add(new File(['picture'], 'image.png', { type: 'image/png' }))
  return data
}
/** Whether a paste is taken from the element with this id. */
globalThis.takes = (id, text) => !document.getElementById(id).dispatchEvent(
  new ClipboardEvent('paste', { clipboardData: carrying(text), bubbles: true, cancelable: true }),
)`,
  })
})
afterAll(() => pages[Symbol.asyncDispose]())

const open = () =>
  pages.open(script, {}, { body: '<main><button id="button"></button><input id="field"></main>' })

test('a zone that ends while files are dragged over it is not left in that state', async () => {
  await using opened = await open()
  const { page } = opened
  await page.evaluate(`document.querySelector('main').dispatchEvent(
    new DragEvent('dragenter', { dataTransfer: carrying(''), cancelable: true }),
  )`)
  expect(await page.evaluate('over')).toEqual([true])
  await page.evaluate('stop()')
  expect(await page.evaluate('over')).toEqual([true, false])
})

test('a text that is pasted into a field stays a text, also if programs have copied a picture of it', async () => {
  await using opened = await open()
  const { page } = opened
  // As of cells and paragraphs from office programs. A page cannot write files into the clipboard.
  expect(
    await page.evaluate("[takes('field', 'lake'), takes('field', ''), takes('button', 'lake')]"),
  ).toEqual([...[false, true, true]])
  await expect.poll(() => page.evaluate('files')).toEqual(['image.png', 'image.png'])
})
