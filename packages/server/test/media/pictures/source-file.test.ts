import { readdir, readFile, readlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { expect, test, vi } from 'vitest'
import { sourceFileOf } from '../../../src/media/pictures/source-file.ts'

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
