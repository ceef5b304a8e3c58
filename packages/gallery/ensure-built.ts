import { execFile } from 'node:child_process'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

const gallery = import.meta.dirname
const root = join(gallery, '../..')

/** All that the built page is made of. */
const sources = [
  'packages/gallery/src',
  'packages/gallery/index.html',
  'packages/gallery/package.json',
  'packages/gallery/precompress.ts',
  'packages/gallery/vite.config.ts',
  'packages/client/src',
  'package-lock.json',
]

/** Builds the gallery where that was not done since its sources changed. */
export default async function ensureBuilt(): Promise<void> {
  const built = await changed(join(gallery, 'dist/index.html'))
  const newest = Math.max(...(await Promise.all(sources.map((path) => newestBelow(join(root, path))))))
  if (built >= newest) return
  const vite = viteProgram()
  if (vite === null) {
    console.error('The gallery is not built: that needs the development dependencies.')
    return
  }
  // Built aside and put in place at once: servers may be starting, and other tests building. In a process of its own,
  // for this one may be a test's, and what is built for tests is not what people get.
  const fresh = join(gallery, `dist-${process.pid}`)
  const former = join(gallery, `dist-${process.pid}-former`)
  await promisify(execFile)(process.execPath, [vite, 'build', '--outDir', fresh, '--logLevel', 'warn'], {
    cwd: gallery,
  })
  await rename(join(gallery, 'dist'), former).catch(() => undefined)
  await rename(fresh, join(gallery, 'dist')).catch(() => undefined)
  for (const left of [fresh, former]) await rm(left, { recursive: true, force: true })
}

function viteProgram(): string | null {
  try {
    return join(createRequire(import.meta.url).resolve('vite/package.json'), '../bin/vite.js')
  } catch {
    return null
  }
}

async function newestBelow(path: string): Promise<number> {
  if (!(await stat(path)).isDirectory()) return await changed(path)
  const names = await readdir(path, { recursive: true })
  return Math.max(...(await Promise.all(names.map((name) => changed(join(path, name))))))
}

/** Milliseconds since 1970; 0 for what is not there. */
const changed = async (path: string): Promise<number> => (await stat(path).catch(() => null))?.mtimeMs ?? 0

if (import.meta.main) await ensureBuilt()
