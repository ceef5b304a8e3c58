import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { root } from '../architecture/sources.ts'

const dist = join(root, 'packages/gallery/dist')
const read = (name: string) => readFile(join(dist, name), 'utf8')

/** The scripts that the page loads at once, including their static imports. */
async function firstScripts(): Promise<string[]> {
  const page = await read('index.html')
  const wanted = [...page.matchAll(/\.\/assets\/([\w.-]+\.js)/g)].map(([, name = '']) => name)
  for (const name of wanted) {
    const code = await read(`assets/${name}`)
    // Dynamic imports are loaded later.
    for (const [, found = ''] of code.matchAll(/(?:from|import)\s*["']\.\/([\w.-]+\.js)["']/g)) {
      if (!wanted.includes(found)) wanted.push(found)
    }
  }
  return wanted
}

test('the scripts of the first view are at most 60 kB with gzip, without the uploader', async () => {
  const names = await firstScripts()
  const sizes = await Promise.all(names.map(async (name) => gzipSync(await read(`assets/${name}`)).length))
  expect(names).not.toEqual([])
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(60_000)
  const all = (await readdir(join(dist, 'assets'))).filter((name) => name.endsWith('.js'))
  expect(all.length).toBeGreaterThan(names.length)
  for (const name of names) expect(await read(`assets/${name}`)).not.toMatch(/Tus-Resumable/)
})

test('the build is a production build without paths of this machine', async () => {
  const names = (await readdir(join(dist, 'assets'))).filter((name) => /\.(js|css)$/.test(name))
  for (const name of names) {
    const code = await read(`assets/${name}`)
    expect([name, code.includes(root), /\blineNumber:\d/.test(code)]).toEqual([name, false, false])
  }
})
