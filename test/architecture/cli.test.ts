import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { circlesAmong, importsOf, read, root, sourcesBelow } from './sources.ts'

const src = 'packages/cli/src/'
const files = sourcesBelow(src)

/** The files of each layer. A file may import those of its own layer and of the layers before it. */
const layers: readonly (readonly string[])[] = [
  // The tools of all commands, those of the service included.
  ['command.ts', 'nearest-name.ts', 'processes.ts'],
  ['client-settings.ts', 'completion.ts', 'terminal.ts'],
  // Files of this machine.
  [
    'guarded-files.ts',
    'local-files.ts',
    'local-names.ts',
    'local-tree.ts',
    'output-file.ts',
    'questions.ts',
    'stored-names.ts',
    'transfers.ts',
    'upload-state.ts',
  ],
  // What several commands do with a service.
  [
    'client-command.ts',
    'downloads.ts',
    'item-paths.ts',
    'item-references.ts',
    'small-uploads.ts',
    'sync-pass.ts',
    'sync-records.ts',
    'mcp-tools.ts',
    'mcp-http.ts',
    'url-uploads.ts',
  ],
  ['get.ts', 'items.ts', 'login.ts', 'ls.ts', 'mcp.ts', 'sync-down.ts', 'sync-up.ts', 'sync.ts', 'upload.ts'],
  ['file-commands.ts'],
]
const layerOf = (path: string) => layers.findIndex((layer) => layer.includes(path.slice(src.length)))

/** The SDK of the Model Context Protocol, and the schemas of its tools. */
const ofProtocol = (path: string, name: string) =>
  /\/mcp(?:-tools|-http)?\.ts$/.test(path) && /^@modelcontextprotocol\/server(\/stdio)?$|^zod$/.test(name)

test('every file of the command line is in a known layer', () => {
  expect(files.filter((path) => layerOf(path) < 0)).toEqual([])
})

test('imports of the command line point one way, and it imports the client but nothing of the server', () => {
  const wrong = files.flatMap((path) => {
    const { own, foreign } = importsOf(path)
    return [
      ...own.filter((target) => layerOf(target) < 0 || layerOf(target) > layerOf(path)),
      ...foreign.filter(
        (name) => !/^node:|^@mediabucket\/client(\/rules)?$/.test(name) && !ofProtocol(path, name),
      ),
    ].map((target) => `${path} → ${target}`)
  })
  expect(wrong).toEqual([])
})

test('no import cycle in the command line, including type imports', () => {
  expect(circlesAmong(files)).toEqual([])
})

test('the package of the command line exports what the server imports, and nothing else', () => {
  const { exports, private: isPrivate } = JSON.parse(read('packages/cli/package.json'))
  const used = new Set(
    globSync('packages/server/src/**/*.ts', { cwd: root })
      .flatMap((path) => importsOf(path).foreign)
      .filter((name) => name.startsWith('@mediabucket/cli/')),
  )
  const names = [...used].map((name) => name.replace('@mediabucket/cli/', '')).sort()
  expect(exports).toEqual(Object.fromEntries(names.map((name) => [`./${name}`, `./src/${name}.ts`])))
  // It is bundled into the package of the server.
  expect(isPrivate).toBe(true)
})

test('one file of the command line reads the environment, and one writes to standard output', () => {
  const having = (text: RegExp) => files.filter((path) => text.test(read(path)))
  expect(having(/\bprocess\.env\b/)).toEqual([`${src}client-settings.ts`])
  // There, control characters in texts of a service are replaced.
  const writers = /\bconsole\.|\bprocess\.std(?:out|err)\.write\b|\bprocess\.stdout(?!\.isTTY| })/
  expect(having(writers)).toEqual([`${src}terminal.ts`])
})
