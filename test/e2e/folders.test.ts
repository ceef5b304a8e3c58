import { mkdir, symlink, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Browser } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { drop } from './drop.ts'
import { namesOf, newGuest, tray, uploadHeading } from './uploading.ts'

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  browser = await sharedBrowser()
  server = await sharedServer()
})

const time = new Date('2026-05-01T12:00:00Z')

/** Writes files with equal modification times to a temporary directory. */
async function tree(files: ReadonlyMap<string, string>) {
  const directory = await temporaryDirectory()
  for (const [path, content] of files) {
    await mkdir(join(directory.path, dirname(path)), { recursive: true })
    await writeFile(join(directory.path, path), content)
    await utimes(join(directory.path, path), time, time)
  }
  return { ...directory, at: (path: string) => join(directory.path, path) }
}

const same = (folders: readonly string[]) =>
  new Map(folders.map((folder) => [`${folder}/same.txt`, folder.at(-1) ?? '']))

test.each(['by drop', 'by button'])(
  'G9 files of equal name, size and time in different folders are all stored: %s',
  async (way) => {
    await using files = await tree(same(['album/a', 'album/b', 'album/b/deep', 'album/c']))
    await using guest = await newGuest(browser, server)
    if (way === 'by drop') await drop(guest.page, [files.at('album')])
    else await guest.choose(strings.listing.chooseFolder, files.at('album'))
    await uploadHeading(guest, strings.uploads.finished(4))
    expect(await namesOf(guest)).toEqual(Array(4).fill('same.txt'))
  },
)

test('G9 files skipped in a drop are counted, with the reason', async () => {
  const path = (number: number) => `album/many/file-${number}.txt`
  await using files = await tree(
    new Map([
      ...Array.from({ length: 250 }, (_, number) => [path(number + 1), `${number}`] as const),
      ['album/.DS_Store', 'x'],
      ['album/Thumbs.db', 'x'],
      ['album/._photo.jpg', 'x'],
      ['album/none.txt', ''],
      ['album/🐚 e\u0301.txt', 'decomposed'],
      ['album/🐚 \u00e9.txt', 'composed'],
      ['beside.txt', 'beside'],
    ]),
  )
  await mkdir(files.at('album/empty'))
  await symlink('/nowhere', files.at('album/dangling'))
  await using guest = await newGuest(browser, server)
  await drop(guest.page, [files.at('beside.txt'), files.at('album')])
  await uploadHeading(guest, strings.uploads.finished(254))
  await tray(guest).getByText(strings.uploads.systemFiles(3)).waitFor()
  await tray(guest).getByText(strings.uploads.emptyFolders(1)).waitFor()
  // G11: items in the order dropped, and a folder in the natural order of its paths.
  const names = await namesOf(guest)
  expect(names[0]).toBe('beside.txt')
  const numbers = names.flatMap((name) => /^file-(\d+)\.txt$/.exec(name)?.[1] ?? [])
  expect(numbers).toEqual(Array.from({ length: 250 }, (_, number) => `${number + 1}`))
  // U8: the service stores names in their composed form.
  expect(names.slice(1, 3)).toEqual(['🐚 \u00e9.txt', '🐚 \u00e9.txt'])
  expect(names.at(-1)).toBe('none.txt')
})

test('G9 a file that is already in the list is reported, and added again on request', async () => {
  await using files = await tree(
    new Map([
      ['one.txt', '1'],
      ['two.txt', '2'],
    ]),
  )
  await using guest = await newGuest(browser, server)
  await guest.page.route('**/api/media', async (route) => {
    if (route.request().method() === 'POST') await held
    await route.continue()
  })
  let open = () => {}
  const held = new Promise<void>((resolve) => {
    open = resolve
  })
  await guest.choose(strings.header.upload, [files.at('one.txt')])
  await guest.page.waitForRequest((request) => request.method() === 'POST')
  await guest.choose(strings.header.upload, [files.at('one.txt'), files.at('two.txt')])
  await tray(guest).getByText(strings.uploads.duplicates(1)).waitFor()
  // The button moves when the row of this file appears.
  await tray(guest).getByText('two.txt').waitFor()
  await guest.button(strings.uploads.addAgain).click()
  open()
  await uploadHeading(guest, strings.uploads.finished(3))
  expect(await namesOf(guest)).toEqual(['one.txt', 'two.txt', 'one.txt'])
  // A file that is uploaded can be uploaded again without a question.
  await guest.choose(strings.header.upload, [files.at('two.txt')])
  await uploadHeading(guest, strings.uploads.finished(4))
})

test('G10 a file that changes before it is sent fails with the reason; the others are stored', async () => {
  await using files = await tree(
    new Map([
      ['a.txt', 'a'],
      ['b.txt', 'b'],
      ['c.txt', 'c'],
    ]),
  )
  await using guest = await newGuest(browser, server)
  let open = () => {}
  const held = new Promise<void>((resolve) => {
    open = resolve
  })
  // The uploader, which reads the files, is loaded after they have changed.
  await guest.page.route('**/assets/uploader-*', async (route) => {
    await held
    await route.continue()
  })
  await guest.choose(strings.header.upload, ['a.txt', 'b.txt', 'c.txt'].map(files.at))
  await writeFile(files.at('b.txt'), 'another b')
  open()
  await uploadHeading(guest, strings.uploads.failed(1))
  await tray(guest).getByText(strings.uploads.changed).waitFor()
  expect(await namesOf(guest)).toEqual(['a.txt', 'c.txt'])
})
