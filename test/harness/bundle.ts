import { createHash } from 'node:crypto'
import { globSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
const server = 'packages/server'

/** Modules that fault tests load before the service (node --import). They share the service's modules. */
const preloads = ['failpoints', 'failing-statements', 'broken-orders'].map((name) => `test/faults/${name}.ts`)

/** The sources of a bundle. */
const patterns = [
  `${server}/{bin,src}/**/!(*.test).{js,ts}`,
  'packages/{client,strip-metadata}/src/**/!(*.test).ts',
  'test/faults/{failpoints,failing-statements,broken-orders,orders,steps,intercept-writes}.ts',
  'package-lock.json',
]

/** Bundles are stored by a hash of their sources, so that runs of different sources do not share one. */
const bundles = join(root, 'node_modules/.cache/mediabucket')
const day = 24 * 3_600_000

/**
 * Files of the bundle, each of which takes a third of a millisecond to load: what every command loads, and what threads and
 * commands load that open the data. Left out: what loads large packages, and the files that start as threads.
 */
const groups = [
  {
    name: 'every-command',
    test: /\/src\/(core\/(faults|names|processes)|cli\/(command|commands|terminal|explain-failure))\.ts/,
    priority: 1,
  },
  {
    name: 'data',
    test: /\/packages\/server\/src\/(?!storage\/(engines|blobs|catalog\/postgres)|core\/(stored-type|ip-address)|.*-thread\.ts)(core|storage)\//,
  },
]

/** Matches the name of a file that a source starts as a thread or a process. */
const started = /`\.\/([\w-]+)\$\{extname\(import\.meta\.url\)\}`/g

/**
 * Vitest's global set-up: bundles the service with its dependencies, which halves the start of the many processes of
 * the tests. With `MEDIABUCKET_TEST_SOURCES=1` they run from the sources, to which the lines of stack traces then point.
 */
export default async function bundleService(): Promise<void> {
  if (process.env['MEDIABUCKET_TEST_SOURCES'] === '1') return
  try {
    const sources = await readSources()
    const hash = createHash('sha256')
    for (const [path, code] of sources) hash.update(`${path}\0${code}\0`)
    hash.update(await readFile(import.meta.filename))
    const bundle = join(bundles, hash.digest('hex').slice(0, 16))
    const now = new Date()
    // Marks the bundle as in use, so that it is not removed as old.
    await utimes(bundle, now, now).catch(() => write(bundle, sources))
    process.env['MEDIABUCKET_BUNDLE'] = join(bundle, 'bin/mediabucket.js')
  } catch (error) {
    console.error('The service could not be bundled; tests run it from its sources.', error)
  }
}

async function readSources(): Promise<Map<string, string>> {
  const paths = globSync(patterns, { cwd: root }).sort()
  return new Map(
    await Promise.all(paths.map(async (path) => [path, await readFile(join(root, path), 'utf8')] as const)),
  )
}

async function write(bundle: string, sources: ReadonlyMap<string, string>): Promise<void> {
  await mkdir(bundles, { recursive: true })
  for (const path of await readdir(bundles))
    if (Date.now() - (await stat(join(bundles, path))).mtimeMs > day)
      await rm(join(bundles, path), { recursive: true, force: true })

  const beside = [...sources].flatMap(([path, code]) =>
    [...code.matchAll(started)].map(([, name = '']) => join(root, dirname(path), `${name}.ts`)),
  )
  const main = join(root, server, 'src/cli/main.ts')
  const { rolldown } = await import('rolldown')
  const made = await rolldown({
    input: Object.fromEntries(
      [main, ...beside, ...preloads.map((path) => join(root, path))].map((path) => [
        basename(path, '.ts'),
        path,
      ]),
    ),
    platform: 'node',
    // Sharp looks for its binaries beside its own file.
    external: ['sharp'],
    plugins: [
      // The contents as hashed, since the files may change at the same time.
      { name: 'sources', load: (path) => sources.get(relative(root, path)) ?? null },
    ],
  })
  const fresh = await mkdtemp(`${bundle}-`)
  // All in one directory, where threads and processes are looked up. Minified: a start spends a third of its time on
  // reading the code.
  await made.write({
    dir: join(fresh, 'dist'),
    chunkFileNames: '[name].js',
    codeSplitting: { groups },
    minify: { compress: true, mangle: { keepNames: true }, codegen: true },
  })
  await made.close()
  await cp(join(root, server, 'bin'), join(fresh, 'bin'), { recursive: true })
  await mkdir(join(fresh, 'dist/cli'))
  await writeFile(join(fresh, 'dist/cli/main.js'), "export { main } from '../main.js'\n")
  await writeFile(join(fresh, 'package.json'), '{ "type": "module" }\n')
  // Another run may have created the same bundle at the same time.
  await rename(fresh, bundle).catch(() => rm(fresh, { recursive: true }))
}
