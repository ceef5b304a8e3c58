import { randomBytes } from 'node:crypto'
import { dirname, join, relative } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { importsOf, read, root, sourcesBelow } from '../test/architecture/sources.ts'
import { freePort } from '../test/harness/free-port.ts'
import { startServer } from '../test/harness/server.ts'
import { makeToken } from '../test/harness/token.ts'

// npm run structure [-- --files]: how far a reader of the sources walks. Counts lines, files and importers, and the files whose code
// runs for one request of each of five kinds, as V8 counts it in all threads of a service that runs from the sources.

const { values } = parseArgs({ options: { files: { type: 'boolean', default: false } } })
const sources = 'packages/server/src'
/** What a timer runs beside one request is not run by each of several. */
const rounds = 3

interface CoverageResult {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[]
  }[]
}

/** The debugger's connection to a process: calls in its main thread and, through it, in its other threads. */
async function openDebugger(url: string) {
  const socket = new WebSocket(url)
  const waiting = new Map<string, (result: never) => void>()
  const sessions = new Set<string>()
  let calls = 0

  function call<Result = unknown>(method: string, params: object = {}, session = ''): Promise<Result> {
    calls += 1
    const id = calls
    const message = JSON.stringify({ id, method, params })
    const answer = new Promise<Result>((resolve) => waiting.set(`${session}:${id}`, resolve))
    if (session === '') socket.send(message)
    else void call('NodeWorker.sendMessageToWorker', { sessionId: session, message })
    return answer
  }
  function receive(text: string, session: string) {
    const { id, method, params, result } = JSON.parse(text)
    if (id !== undefined) waiting.get(`${session}:${id}`)?.(result as never)
    else if (method === 'NodeWorker.receivedMessageFromWorker') receive(params.message, params.sessionId)
    else if (method === 'NodeWorker.detachedFromWorker') sessions.delete(params.sessionId)
    else if (method === 'NodeWorker.attachedToWorker') {
      sessions.add(params.sessionId)
      void startCounting(params.sessionId)
    }
  }
  async function startCounting(session: string) {
    await call('Profiler.enable', {}, session)
    await call('Profiler.startPreciseCoverage', { callCount: true, detailed: false }, session)
  }
  socket.addEventListener('message', ({ data }) => receive(String(data), ''))
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  await startCounting('')
  await call('NodeWorker.enable', { waitForDebuggerOnStart: false })

  /** The sources of which a function ran since the last call. */
  async function filesRun(): Promise<string[]> {
    const taken = await Promise.all(
      ['', ...sessions].map((session) => call<CoverageResult>('Profiler.takePreciseCoverage', {}, session)),
    )
    const run = taken
      .flatMap(({ result }) => result)
      .filter(
        ({ url, functions }) =>
          url.startsWith('file:') && functions.some(({ ranges: [whole] }) => (whole?.count ?? 0) > 0),
      )
      .map(({ url }) => relative(root, fileURLToPath(url)))
    return [...new Set(run)].filter((path) => path.startsWith(sources))
  }
  return { filesRun, close: () => socket.close() }
}

/** The files whose code ran until nothing runs any more: the answer of a request comes before its last work. */
async function filesUntilQuiet(filesRun: () => Promise<string[]>): Promise<string[]> {
  const run = new Set<string>()
  for (let takes = 0; takes < 10; takes += 1) {
    await setTimeout(50)
    const files = await filesRun()
    if (files.length === 0) break
    for (const file of files) run.add(file)
  }
  return [...run]
}

type Files = readonly string[]

/** The files whose code runs for one request of each kind, in any thread. */
async function walks(): Promise<Record<string, Files>> {
  const program = join(root, 'packages/server/bin/mediabucket.js')
  const port = await freePort()
  const inspect = [`--inspect=127.0.0.1:${port}`, '--inspect-publish-uid=http']
  const flags = [...inspect, '--disable-sigusr1', '--max-semi-space-size=16']
  await using server = await startServer({}, undefined, program, flags)
  const [target] = JSON.parse(await (await fetch(`http://127.0.0.1:${port}/json`)).text())
  const { filesRun, close } = await openDebugger(target.webSocketDebuggerUrl)
  const manager = await makeToken(server, '--bucket', 'default', '--scope', 'tokens:manage,media:read')

  async function send(path: string, init: RequestInit = {}): Promise<string> {
    const response = await server.request(path, init)
    const body = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${body}`)
    return body
  }
  const upload = () => send('/api/media', { method: 'POST', body: randomBytes(2_000) })
  const form = () => {
    const body = new FormData()
    body.set('file', new Blob([randomBytes(2_000)]), 'bytes.bin')
    return body
  }
  const token = {
    method: 'POST',
    headers: { authorization: manager.authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'app', scopes: ['media:read'] }),
  }
  let newest = ''
  const requests: Record<string, () => Promise<unknown>> = {
    'page 2 of the listing': () => send('/api/media?page=2'),
    'raw upload of 2 kB': upload,
    'form with a file of 2 kB': () => send('/api/media', { method: 'POST', body: form() }),
    'download of 2 kB': () => send(newest),
    'token that creates a token': () => send('/api/tokens', token),
  }
  for (let count = 0; count < 12; count += 1) await upload()
  const found: Record<string, Files> = {}
  for (const [title, request] of Object.entries(requests)) {
    const each: Files[] = []
    for (let round = 0; round <= rounds; round += 1) {
      // Nothing about the new item is in a cache.
      newest = new URL(JSON.parse(await upload()).url).pathname
      await filesUntilQuiet(filesRun)
      await request()
      each.push(await filesUntilQuiet(filesRun))
    }
    // Modules are loaded in the first round.
    const [files = [], ...others] = each.slice(1)
    found[title] = files.filter((file) => others.every((other) => other.includes(file))).sort()
  }
  close()
  return found
}

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
for (const [title, walked] of Object.entries(await walks()))
  print(`files for: ${title}`, walked.length, walked)
