import { mkdtempDisposable, readdir, readFile, readlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { sourceFileOf } from '../../src/pictures/tools.ts'

test('V15 bytes in memory are a temporary file until they are released', async () => {
  const release = vi.fn(async () => undefined)
  const bytes = new Uint8Array([1, 2, 3])
  const file = await sourceFileOf({ content: { type: 'bytes', bytes }, isWhole: true, release })
  expect(await readFile(file.path)).toEqual(Buffer.from(bytes))
  expect(await readlink(`${file.output}.png`)).toBe('/proc/self/fd/3')
  await file.release()
  await expect(readdir(dirname(file.path))).rejects.toMatchObject({ code: 'ENOENT' })
  expect(release).toHaveBeenCalledOnce()
})

test('V15 without room for a temporary file the fault is overloaded, and the bytes are released', async () => {
  const release = vi.fn(async () => undefined)
  vi.stubEnv('TMPDIR', '/nonexistent')
  try {
    const content = { type: 'bytes', bytes: new Uint8Array(1) } as const
    await expect(sourceFileOf({ content, isWhole: true, release })).rejects.toMatchObject({
      code: 'overloaded',
    })
  } finally {
    vi.unstubAllEnvs()
  }
  expect(release).toHaveBeenCalledOnce()
})

test('V15 copies are bounded in their size and their number', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-source-'))
  const path = join(directory.path, 'picture')
  const release = async () => undefined
  const openSource = () => sourceFileOf({ content: { type: 'file', path }, isWhole: true, release })
  const change = [{ position: 1, value: 7 }]
  await writeFile(path, Uint8Array.of(1, 2, 3))
  const sources = await Promise.all(Array.from({ length: 9 }, openSource))
  const [last, ...others] = sources
  for (const source of others)
    expect(await readFile(await source.copyWith(change))).toEqual(Buffer.from([1, 7, 3]))
  await expect(last?.copyWith(change)).rejects.toMatchObject({ code: 'overloaded' })
  for (const source of others) await source.release()
  await last?.copyWith(change)
  await last?.release()

  await truncate(path, 64 * 1024 ** 2 + 1)
  const large = await openSource()
  await expect(large.copyWith(change)).rejects.toMatchObject({ code: 'variant-unavailable' })
  await large.release()
})
