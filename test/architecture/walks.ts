import { randomBytes } from 'node:crypto'
import { join, relative } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../harness/free-port.ts'
import { startServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { root } from './sources.ts'

// The files whose code runs for one request, as V8 counts it in all threads of a service that runs from the sources.

export const sources = 'packages/server/src'
/** What happens beside one request happens beside each of several only if it belongs to them. */
const rounds = 3

/**
 * Loaded before the service in each of its threads, which take no flags from the program. What a timer runs beside a request, such as a sweep,
 * would count as run by the request. Milliseconds.
 */
const withoutPeriodicWork = `data:text/javascript,${encodeURIComponent(`
  import { syncBuiltinESMExports } from 'node:module'
  import threads from 'node:worker_threads'
  const { setInterval, setTimeout } = globalThis
  const orNothing = (callback, time) => (time < 200 ? callback : () => {})
  globalThis.setInterval = (callback, time, ...more) => setInterval(orNothing(callback, time), time, ...more)
  globalThis.setTimeout = (callback, time, ...more) => setTimeout(orNothing(callback, time), time, ...more)
  threads.Worker = class extends threads.Worker {
    constructor(file, options) {
      super(file, { ...options, execArgv: ['--import', import.meta.url] })
    }
  }
  syncBuiltinESMExports()
`)}`

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
  let quiet = 0
  for (let takes = 0; takes < 20 && quiet < 2; takes += 1) {
    await setTimeout(50)
    const files = await filesRun()
    quiet = files.length === 0 ? quiet + 1 : 0
    for (const file of files) run.add(file)
  }
  return [...run]
}

type Files = readonly string[]

/** The files of one kind of request. */
export interface Walk {
  /** Those whose code ran for each request, in order. */
  readonly files: Files
  /** Those whose code ran for any of the requests: also what a timer ran beside one of them. */
  readonly seen: ReadonlySet<string>
}

/** The requests that are measured. */
export const walkTitles = [
  'page 2 of the listing',
  'raw upload of 2 kB',
  'form with a file of 2 kB',
  'download of 2 kB',
  'token that creates a token',
] as const

export type WalkTitle = (typeof walkTitles)[number]

/** The files whose code runs for one request of each kind, in any thread of a service on SQLite and the disk. */
export async function measureWalks<Title extends WalkTitle>(
  titles: readonly Title[],
): Promise<ReadonlyMap<Title, Walk>> {
  const program = join(root, 'packages/server/bin/mediabucket.js')
  const port = await freePort()
  const inspect = [`--inspect=127.0.0.1:${port}`, '--inspect-publish-uid=http']
  const flags = ['--import', withoutPeriodicWork, ...inspect, '--disable-sigusr1', '--max-semi-space-size=16']
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
  const requests: Readonly<Record<WalkTitle, () => Promise<unknown>>> = {
    'page 2 of the listing': () => send('/api/media?page=2'),
    'raw upload of 2 kB': upload,
    'form with a file of 2 kB': () => send('/api/media', { method: 'POST', body: form() }),
    'download of 2 kB': () => send(newest),
    'token that creates a token': () => send('/api/tokens', token),
  }
  for (let count = 0; count < 12; count += 1) await upload()
  const found = new Map<Title, Walk>()
  for (const title of titles) {
    const each: Files[] = []
    for (let round = 0; round <= rounds; round += 1) {
      // Nothing about the new item is in a cache.
      newest = new URL(JSON.parse(await upload()).url).pathname
      await filesUntilQuiet(filesRun)
      await requests[title]()
      each.push(await filesUntilQuiet(filesRun))
    }
    // Modules are loaded in the first round.
    const [first = [], ...others] = each.slice(1)
    found.set(title, {
      files: first.filter((file) => others.every((other) => other.includes(file))).sort(),
      seen: new Set(each.flat()),
    })
  }
  close()
  return found
}

/** The page that follows requests, and has the list of the files of each. */
export const requestsPage = 'docs/architecture/follow-a-request.md'

const list = /^<!-- files: ([^\n]+) -->\n```text\n([^`]*)```\n/gm

/** The list of the files that all requests need, which the lists of the requests leave out. */
const everyRequest = 'every request'

/** The requests that the page follows, and the files of each. */
export function listedWalks(page: string): ReadonlyMap<WalkTitle, Files> {
  const lists = new Map(
    [...page.matchAll(list)].map(([, title = '', lines = '']) => [title, lines.split('\n').filter(Boolean)]),
  )
  const common = lists.get(everyRequest) ?? []
  lists.delete(everyRequest)
  return new Map([...lists].map(([title, files]) => [titleOf(title), [...common, ...files]]))
}

/** The page with the lists of these requests. */
export function withLists(page: string, walks: ReadonlyMap<WalkTitle, Walk>): string {
  const [first = [], ...others] = [...walks.values()].map(({ files }) => files)
  const common = first.filter((file) => others.every((files) => files.includes(file)))
  return page.replace(list, (whole, title: string) => {
    const own = (walk: Walk | undefined) => walk?.files.filter((file) => !common.includes(file))
    const files = title === everyRequest ? common : own(walks.get(titleOf(title)))
    if (files === undefined) return whole
    const lines = files.map((file) => `${withoutRoot(file)}\n`)
    return `<!-- files: ${title} -->\n\`\`\`text\n${lines.join('')}\`\`\`\n`
  })
}

/** The name of a file in the documents. */
export const withoutRoot = (file: string): string => relative(sources, file)

function titleOf(text: string): WalkTitle {
  const title = walkTitles.find((known) => known === text)
  if (title === undefined) throw new Error(`${requestsPage} has a list of an unknown request: ${text}`)
  return title
}
