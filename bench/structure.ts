import { writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { functionsOf, type NamedFunction } from '../test/architecture/functions.ts'
import { importsOf, read, root, sourcesBelow } from '../test/architecture/sources.ts'
import { measureWalks, requestsPage, walkTitles, withLists } from '../test/architecture/walks.ts'

// npm run structure [-- --files] [--write]: how far a reader of the sources walks. Counts lines, files, importers and equal file names,
// functions that no symbol search finds, long functions, and the files whose code runs for one request of each of five kinds.
// `--files` also lists what is counted. `--write` brings the lists of docs/architecture/follow-a-request.md up to date.

const { values } = parseArgs({
  options: { files: { type: 'boolean', default: false }, write: { type: 'boolean', default: false } },
})
const sources = 'packages/server/src'

/** A function of so many lines is long. */
const longFunction = 80

type Files = readonly string[]

interface Shape {
  readonly lines: number
  readonly files: number
  readonly median: number
  readonly fragments: Files
  readonly circles: Files
}

/** The sizes and imports of the server's sources. */
function shape(): Shape {
  const files = sourcesBelow(sources)
  const lines = files.map((file) => read(file).split('\n').length - 1).sort((a, b) => a - b)
  const imports = new Map(files.map((file) => [file, importsOf(file).own]))
  const importers = Map.groupBy(
    files.flatMap((file) => (imports.get(file) ?? []).map((imported) => ({ file, imported }))),
    ({ imported }) => imported,
  )
  const fragments = files.filter((file) => {
    const [first, ...others] = importers.get(file) ?? []
    return first !== undefined && others.length === 0 && dirname(first.file) === dirname(file)
  })
  return {
    lines: lines.reduce((sum, count) => sum + count, 0),
    files: files.length,
    median: lines[Math.floor(lines.length / 2)] ?? 0,
    fragments,
    circles: files.filter((file) => reaches(imports, file, file)),
  }
}

/** Whether the imports of a file, and theirs, include another one. */
function reaches(imports: ReadonlyMap<string, Files>, from: string, to: string): boolean {
  const seen = new Set<string>()
  const open = [...(imports.get(from) ?? [])]
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (file === to) return true
    if (seen.has(file)) continue
    seen.add(file)
    open.push(...(imports.get(file) ?? []))
  }
  return false
}

/** How many functions are nested in others, for each folder. */
function nestedByFolder(functions: readonly NamedFunction[]): string[] {
  const folders = Map.groupBy(functions, ({ file }) => relative(sources, dirname(file)))
  return [...folders].map(([folder, own]) => `${folder}: ${shareNested(own)}`)
}

function shareNested(functions: readonly NamedFunction[]): string {
  const nested = functions.filter(({ isNested }) => isNested).length
  return `${nested} of ${functions.length} (${Math.round((100 * nested) / functions.length)} %)`
}

function longFunctions(functions: readonly NamedFunction[]): string[] {
  const long = functions.filter(({ lines }) => lines >= longFunction).sort((a, b) => b.lines - a.lines)
  return long.map(({ file, line, name, lines }) => `${file}:${line} ${name}, ${lines} lines`)
}

/** The file names that several folders have. */
function equalNames(): string[] {
  const named = Map.groupBy(sourcesBelow(sources), (file) => basename(file))
  return [...named].flatMap(([name, same]) =>
    same.length > 1 ? `${name}: ${same.map((file) => relative(sources, dirname(file))).join(', ')}` : [],
  )
}

const { lines, files, median, fragments, circles } = shape()
const functions = sourcesBelow(sources).flatMap(functionsOf)
const [long, equal] = [longFunctions(functions), equalNames()]
const print = (title: string, figure: string | number, listed: Files = []) => {
  console.log(`${title.padEnd(50)} ${figure}`)
  if (values.files) for (const file of listed) console.log(`  ${file}`)
}
print('lines / files / median lines of the server', `${lines} / ${files} / ${median}`)
print('files with one importer, in their own folder', fragments.length, fragments)
print('files that import themselves through others', circles.length, circles)
print('named functions inside other functions', shareNested(functions), nestedByFolder(functions))
print(`functions of ${longFunction} lines and more`, long.length, long)
print('file names that several folders have', equal.length, equal)
const walks = await measureWalks(walkTitles)
for (const [title, walk] of walks) print(`files for: ${title}`, walk.files.length, walk.files)
if (values.write) writeFileSync(join(root, requestsPage), withLists(read(requestsPage), walks))
