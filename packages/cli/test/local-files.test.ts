import { open, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../../../test/harness/directory.ts'
import { DiskFile } from '../src/local-files.ts'

test('sizes and bytes beyond 2 and 4 GB are correct', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'sparse')
  await using file = await open(path, 'w')
  const places = [1, 2 ** 31 + 5, 2 ** 32 + 5, 6 * 2 ** 30 - 4]
  await file.truncate(6 * 2 ** 30)
  for (const [index, at] of places.entries()) await file.write(`at ${index}`, at)
  const blob = await DiskFile.at(path)
  expect(blob.size).toBe(6 * 2 ** 30)
  for (const [index, at] of places.entries()) {
    const slice = blob.slice(at - 1, at + 4)
    expect(Buffer.from(await slice.arrayBuffer()).toString()).toBe(`\0at ${index}`)
    expect(await new Response(slice.slice(1).stream()).text()).toBe(`at ${index}`)
  }
})

test('a slice ends where the file ends', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'file')
  await writeFile(path, 'abcdef')
  const blob = await DiskFile.at(path)
  const read = async (slice: Blob) => [slice.size, Buffer.from(await slice.arrayBuffer()).toString()]
  expect(await read(blob)).toEqual([6, 'abcdef'])
  expect(await read(blob.slice(4, 100))).toEqual([2, 'ef'])
  expect(await read(blob.slice(2, 5).slice(1))).toEqual([2, 'de'])
  expect(await read(blob.slice(7))).toEqual([0, ''])
})

test.each<[string, (path: string) => Promise<void>]>([
  ['written to', (path) => writeFile(path, 'abcdeF')],
  ['cut', (path) => truncate(path, 3)],
  ['touched', (path) => utimes(path, 1, 1)],
])('a file that was %s since is not read', async (_name, change) => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'file')
  await writeFile(path, 'abcdef')
  const blob = await DiskFile.at(path)
  await change(path)
  await expect(blob.slice(0, 2).arrayBuffer()).rejects.toThrow('the file changed during the upload')
})

test('a file that has bytes beyond its size is not read', async () => {
  const blob = await DiskFile.at('/proc/version')
  expect(blob.size).toBe(0)
  await expect(blob.arrayBuffer()).rejects.toThrow('its size is not known before it is read')
})
