import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseSync } from 'oxc-parser'

export const root = resolve(import.meta.dirname, '../..')

/** The TypeScript files below a directory, as paths from the project's root. */
export function filesBelow(directory: string): string[] {
  return readdirSync(join(root, directory), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !path.includes('node_modules'))
    .sort()
}

/** Those that are no tests. */
export const sourcesBelow = (directory: string): string[] =>
  filesBelow(directory).filter((path) => !path.endsWith('.test.ts'))

export const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The imports and re-exports of a file, including types; files of the project as paths from its root. */
export function importsOf(path: string): { own: string[]; foreign: string[] } {
  const { module } = parseSync(path, read(path))
  const statics = [
    ...module.staticImports.map((found) => found.moduleRequest.value),
    ...module.staticExports.flatMap((found) =>
      found.entries.flatMap((entry) => entry.moduleRequest?.value ?? []),
    ),
  ]
  const dynamic = module.dynamicImports.map(({ moduleRequest: { start, end } }) =>
    read(path)
      .slice(start, end)
      .replace(/^['"]|['"]$/g, ''),
  )
  const all = [...new Set([...statics, ...dynamic])]
  return {
    own: all.filter((name) => name.startsWith('.')).map((name) => join(dirname(path), name)),
    foreign: all.filter((name) => !name.startsWith('.')),
  }
}

/** The import cycles among files, imports of types included. */
export function circlesAmong(files: readonly string[]): string[] {
  const circles: string[] = []
  const state = new Map<string, 'open' | 'done'>()
  const visit = (path: string, trail: readonly string[]): void => {
    if (state.get(path) === 'done') return
    if (state.get(path) === 'open') {
      circles.push([...trail.slice(trail.indexOf(path)), path].join(' → '))
      return
    }
    state.set(path, 'open')
    for (const target of importsOf(path).own) if (/\.tsx?$/.test(target)) visit(target, [...trail, path])
    state.set(path, 'done')
  }
  for (const path of files) visit(path, [])
  return circles
}

/** All packages and Node modules that a file loads at its start: its static imports and those of the files that it imports. */
export function loadedAtStart(path: string, seen = new Set<string>()): Set<string> {
  if (seen.has(path)) return seen
  seen.add(path)
  const { module } = parseSync(path, read(path))
  for (const { moduleRequest, entries } of module.staticImports) {
    if (entries.length > 0 && entries.every(({ isType }) => isType)) continue
    const { value: name } = moduleRequest
    if (name.startsWith('.')) loadedAtStart(join(dirname(path), name), seen)
    else seen.add(name)
  }
  return seen
}
