import { createHash } from 'node:crypto'
import { globSync } from 'node:fs'
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
const server = 'packages/server'

/** Modules that fault tests load before the service (node --import). They share the service's modules. */
const preloads = ['failpoints', 'failing-statements', 'broken-orders'].map((name) => `test/faults/${name}.ts`)

/** The sources of a bundle. */
const patterns = [
  `${server}/{bin,src}/**/!(*.test).{js,ts}`,
  `${server}/build.ts`,
  'packages/{cli,client,strip-metadata}/src/**/!(*.test).ts',
  'test/faults/{failpoints,failing-statements,broken-orders,orders,steps,intercept-writes}.ts',
  'package-lock.json',
]

/** Bundles are stored by a hash of their sources, so that runs of different sources do not share one. */
const bundles = join(root, 'node_modules/.cache/mediabucket')
const day = 24 * 3_600_000

/**
 * Vitest's global set-up: bundles the service as its package does (packages/server/build.ts), with the modules of the fault tests, so
 * that tests run what users run, and the many processes start in half the time. With `MEDIABUCKET_TEST_SOURCES=1` they run from the
 * sources, to which the lines of stack traces then point.
 */
export default async function bundleService(): Promise<void> {
  if (process.env['MEDIABUCKET_TEST_SOURCES'] === '1') return
  try {
    let hash = await hashSources()
    let bundle = join(bundles, hash)
    const now = new Date()
    // Marks the bundle as in use, so that it is not removed as old.
    const exists = await utimes(bundle, now, now).then(
      () => true,
      () => false,
    )
    if (!exists) {
      await removeOld()
      const fresh = await mkdtemp(`${bundle}-`)
      // Commands that root runs become the owner of the data, who loads modules too.
      await chmod(fresh, 0o755)
      // Another process may have changed the sources in the meantime.
      for (let built = ''; built !== hash; bundle = join(bundles, hash)) {
        built = hash
        await write(fresh)
        hash = await hashSources()
      }
      // Another run may have created the same bundle at the same time.
      await rename(fresh, bundle).catch(() => rm(fresh, { recursive: true }))
    }
    process.env['MEDIABUCKET_BUNDLE'] = join(bundle, 'bin/mediabucket.js')
  } catch (error) {
    console.error('The service could not be bundled; tests run it from its sources.', error)
  }
}

async function hashSources(): Promise<string> {
  const hash = createHash('sha256').update(await readFile(import.meta.filename))
  for (const path of globSync(patterns, { cwd: root }).sort())
    hash.update(`${path}\0${await readFile(join(root, path), 'utf8')}\0`)
  return hash.digest('hex').slice(0, 16)
}

async function removeOld(): Promise<void> {
  await mkdir(bundles, { recursive: true })
  for (const path of await readdir(bundles))
    if (Date.now() - (await stat(join(bundles, path))).mtimeMs > day)
      await rm(join(bundles, path), { recursive: true, force: true })
}

async function write(directory: string): Promise<void> {
  // Loaded here: a bundle that exists needs no bundler.
  const { writeBundle } = await import('../../packages/server/build.ts')
  await writeBundle(
    join(directory, 'dist'),
    preloads.map((path) => join(root, path)),
  )
  await cp(join(root, server, 'bin'), join(directory, 'bin'), { recursive: true })
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }\n')
}
