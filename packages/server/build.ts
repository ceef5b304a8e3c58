import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { cp, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type OutputChunk, type Plugin, rolldown } from 'rolldown'
import { parseAst } from 'rolldown/parseAst'

// npm run build: bundles the service with its dependencies into dist, and copies the pages for operators and users.

const packageDirectory = import.meta.dirname

/** Sharp looks for its binaries beside its own file. */
const notBundled = ['sharp']

/**
 * Files of the bundle, each of which takes a third of a millisecond to load: what every command loads, and what threads and
 * commands load that open the data. Left out: what loads large packages, and the files that start as threads.
 */
const groups = [
  {
    name: 'every-command',
    test: /\/packages\/(client\/src\/([a-z]+-)?rules|cli\/src\/(command|file-commands|nearest-name|terminal)|server\/src\/(core\/(faults|version)|cli\/(commands|explain-failure)))\.ts/,
    priority: 1,
  },
  {
    name: 'data',
    test: /\/packages\/server\/src\/(?!storage\/(engines|blobs|catalog\/engines\/postgres)|core\/(stored-type|ip-address)|.*-thread\.ts)(core|storage)\//,
  },
]

/** Matches the name of a file that a source starts as a thread or a process. */
const started = /`\.\/([\w-]+)\$\{extname\(import\.meta\.url\)\}`/g

/**
 * Reads the modules of Node.js without importing them: an import reads every export of the module, and some of these exports load further
 * modules when they are read, such as HTTP and Web Crypto in threads that use neither.
 */
const readBuiltins: Plugin = {
  name: 'read-builtins',
  renderChunk(code) {
    let rendered = code
    // From the end, so that the offsets of those before stay.
    for (const node of parseAst(code).body.toReversed()) {
      if (node.type !== 'ImportDeclaration' || !node.source.value.startsWith('node:')) continue
      const builtin = `globalThis.process.getBuiltinModule('${node.source.value}')`
      const read = node.specifiers.map((specifier) => {
        if (specifier.type !== 'ImportSpecifier') return `const ${specifier.local.name} = ${builtin};`
        const { imported, local } = specifier
        const name = imported.type === 'Literal' ? imported.value : imported.name
        return `const { ${name}: ${local.name} } = ${builtin};`
      })
      rendered = rendered.slice(0, node.start) + read.join('') + rendered.slice(node.end)
    }
    return rendered
  },
}

/** A bundled package, with the files that state its licence. */
interface BundledPackage {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly texts: readonly string[]
}

/**
 * Writes the bundle into `directory`: `main.js`, the files that start as threads and processes, what they share, and the licences of
 * the bundled packages. All files are in one directory, where threads and processes are looked up. `more` are entries that share its modules.
 */
export async function writeBundle(directory: string, more: readonly string[] = []): Promise<void> {
  const sources = globSync('src/**/!(*.test).ts', { cwd: packageDirectory }).map((path) =>
    join(packageDirectory, path),
  )
  const beside = sources.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(started)].map(([, name = '']) =>
      join(dirname(path), `${name}.ts`),
    ),
  )
  const entries = [join(packageDirectory, 'src/cli/main.ts'), ...beside, ...more]
  await using made = await rolldown({
    input: Object.fromEntries(entries.map((path) => [basename(path, '.ts'), path])),
    platform: 'node',
    external: notBundled,
    plugins: [readBuiltins],
  })
  const { output } = await made.write({
    dir: directory,
    chunkFileNames: '[name].js',
    codeSplitting: { groups },
    // A start spends a third of its time on reading the code. Names are kept, so that stack traces name functions; source maps
    // would be read only by processes that were started with a flag, and format each error ten times slower.
    minify: { compress: true, mangle: { keepNames: true }, codegen: true },
  })
  const chunks = output.filter((file) => file.type === 'chunk')
  await writeFile(join(directory, 'THIRD-PARTY-NOTICES.txt'), describeLicences(bundledPackages(chunks)))
}

/** The packages of others whose modules the files contain, by name. */
function bundledPackages(chunks: readonly OutputChunk[]): BundledPackage[] {
  const directories = new Set(
    chunks
      .flatMap(({ moduleIds }) => moduleIds)
      .flatMap((id) => /^(?:\0[^/]*)?(\/.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? []),
  )
  return [...directories]
    .map((directory) => {
      const { name, version, license } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
      const read = (pattern: RegExp) =>
        readdirSync(directory)
          .filter((file) => pattern.test(file))
          .sort()
          .map((file) => readFileSync(join(directory, file), 'utf8'))
      const texts = read(/^(licen[cs]e|notice|copying)/i)
      // Some packages state their licence in their description only.
      const described =
        texts.length > 0 ? texts : [...read(/^readme\.md$/i).flatMap(afterLicenceHeading), ...ownTexts(name)]
      return { name, version, license, texts: described.map((text) => text.trim()) }
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The licence of a package whose archive has none, as its repository has it. */
const ownTexts = (name: string): string[] => (name === 'thumbhash' ? [thumbhashLicence] : [])

const thumbhashLicence = `MIT License

Copyright (c) 2023 Evan Wallace

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`

const afterLicenceHeading = (text: string): string[] =>
  text
    .split(/^#+ *licen[cs]e[^\n]*\n|^licen[cs]e\n-+\n/im)
    .slice(1)
    .map((rest) => rest.replace(/\n#.*/s, ''))

function describeLicences(packages: readonly BundledPackage[]): string {
  const described = packages.map(({ name, version, license, texts }) =>
    [`${name} ${version} (${license})`, ...texts].join('\n\n'),
  )
  return `${['The files of this directory contain these packages:', ...described].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

/** Copies the pages for operators and users beside the bundle, with the files that they name; the build of an image has none of them. */
async function copyPages(): Promise<void> {
  const repository = join(packageDirectory, '../..')
  const forDevelopers = ['images', 'architecture', 'architecture.md', 'decisions', 'openapi.json']
  for (const name of ['docs', 'CHANGELOG.md']) {
    await rm(join(packageDirectory, name), { recursive: true, force: true })
    if (!existsSync(join(repository, name))) continue
    await cp(join(repository, name), join(packageDirectory, name), {
      recursive: true,
      filter: (path) => !forDevelopers.includes(basename(path)),
    })
  }
}

if (import.meta.main) {
  await copyPages()
  const dist = join(packageDirectory, 'dist')
  await rm(dist, { recursive: true, force: true })
  await writeBundle(dist)
}
