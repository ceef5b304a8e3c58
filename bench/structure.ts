import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { importsOf, read, root, sourcesBelow } from '../test/architecture/sources.ts'
import { measureWalks, requestsPage, walkTitles, withLists } from '../test/architecture/walks.ts'

// npm run structure [-- --files] [--write]: how far a reader of the sources walks. Counts lines, files and importers, and the files whose
// code runs for one request of each of five kinds. `--write` brings the lists of docs/architecture/follow-a-request.md up to date.

const { values } = parseArgs({
  options: { files: { type: 'boolean', default: false }, write: { type: 'boolean', default: false } },
})
const sources = 'packages/server/src'

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

const { lines, files, median, fragments, circles } = shape()
const print = (title: string, figure: string | number, listed: Files = []) => {
  console.log(`${title.padEnd(50)} ${figure}`)
  if (values.files) for (const file of listed) console.log(`  ${file}`)
}
print('lines / files / median lines of the server', `${lines} / ${files} / ${median}`)
print('files with one importer, in their own folder', fragments.length, fragments)
print('files that import themselves through others', circles.length, circles)
const walks = await measureWalks(walkTitles)
for (const [title, walk] of walks) print(`files for: ${title}`, walk.files.length, walk.files)
if (values.write) writeFileSync(join(root, requestsPage), withLists(read(requestsPage), walks))
