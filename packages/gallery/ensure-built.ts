import { execFile } from 'node:child_process'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

const gallery = import.meta.dirname
const root = join(gallery, '../..')
const dist = join(gallery, 'dist')

/** The inputs of the build. */
const sources = [
  'packages/gallery/src',
  'packages/gallery/index.html',
  'packages/gallery/upload.html',
  'packages/gallery/package.json',
  'packages/gallery/precompress.ts',
  'packages/gallery/vite.config.ts',
  'packages/client/src',
  'package-lock.json',
]

/** Builds the gallery if a source is newer than the last build. */
export default async function ensureBuilt(): Promise<void> {
  const builtAt = await modifiedAt(join(dist, 'index.html'))
  const changedAt = Math.max(...(await Promise.all(sources.map((path) => newestBelow(join(root, path))))))
  if (builtAt >= changedAt) return
  const vite = viteProgram()
  if (vite === null) {
    console.error('The gallery is not built, because the development dependencies are not installed.')
    return
  }
  // Build beside `dist` and swap by renaming: other processes may read `dist` or build at the same time.
  // A child process, because Vite would take NODE_ENV and other settings from a test runner.
  const fresh = `${dist}-${process.pid}`
  const former = `${dist}-${process.pid}-former`
  for (const mode of ['production', 'upload-page'])
    await promisify(execFile)(
      process.execPath,
      [vite, 'build', '--mode', mode, '--outDir', fresh, '--logLevel', 'warn'],
      { cwd: gallery },
    )
  await rename(dist, former).catch(() => undefined)
  await rename(fresh, dist).catch(() => undefined)
  for (const path of [fresh, former]) await rm(path, { recursive: true, force: true })
}

/** The path of Vite's command; null if Vite is not installed. */
function viteProgram(): string | null {
  try {
    return join(createRequire(import.meta.url).resolve('vite/package.json'), '../bin/vite.js')
  } catch {
    return null
  }
}

async function newestBelow(path: string): Promise<number> {
  if (!(await stat(path)).isDirectory()) return await modifiedAt(path)
  const names = await readdir(path, { recursive: true })
  return Math.max(...(await Promise.all(names.map((name) => modifiedAt(join(path, name))))))
}

/** Milliseconds since 1970; 0 if the file does not exist. */
const modifiedAt = async (path: string): Promise<number> => (await stat(path).catch(() => null))?.mtimeMs ?? 0

if (import.meta.main) await ensureBuilt()
