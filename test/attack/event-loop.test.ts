import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { seed } from '../harness/seed.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { readItems } from '../harness/wire.ts'

/** Milliseconds of CPU time. A task takes about a millisecond; a collection of garbage may take some of them. */
const longestTurn = 100

let server: TestServer
let file: string
let tokens: readonly string[]
let ids: readonly string[]
beforeAll(async () => {
  const preload = new URL('watch-loop.ts', import.meta.url)
  file = join(import.meta.dirname, `../../node_modules/.cache/loop-${process.pid}`)
  server = await startServer({
    NODE_OPTIONS: `--import ${preload}`,
    TEST_LOOP_FILE: file,
    MEDIABUCKET_AUDIT: 'changes',
  })
  await seed(server, '--items', '40000', '--bucket', 'large')
  const made = await Promise.all(Array.from({ length: 3 }, () => makeToken(server, '--bucket', 'large')))
  tokens = made.map(({ authorization }) => authorization)
  const headers = { authorization: tokens[0] ?? '', 'content-type': 'application/json' }
  const listIds = async () => {
    const { data } = await readItems(await server.request('/api/items?limit=500', { headers }))
    return data.map(({ id }) => id)
  }
  await server.command('bucket', 'set', 'large', '--trash-days', '30')
  const body = JSON.stringify({ ids: await listIds() })
  expect((await server.request('/api/media', { method: 'DELETE', headers, body })).status).toBe(200)
  ids = await listIds()
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  rmSync(file, { force: true })
})

/** Begins to watch the turns of the event loop. */
async function watch(): Promise<void> {
  rmSync(file, { force: true })
  server.process.kill('SIGUSR2')
  await until('the watch has begun', () => existsSync(file))
}

/** The longest turn since the watch began. */
async function longest(): Promise<number> {
  // A response is sent before its turn ends; the next one comes after the end was recorded.
  await server.request('/healthz')
  return Number(readFileSync(file, 'utf8'))
}

/**
 * Sends a request on so many connections, and waits until each has received so many bytes of its response. The server stands still until
 * all are sent, so one turn of its event loop reads them all.
 */
async function send(count: number, lines: readonly string[], body: string, bytes: number): Promise<void> {
  const [head, ...headers] = lines
  const common = [
    'Host: h',
    `Content-Length: ${body.length}`,
    'Content-Type: application/json',
    'Connection: close',
  ]
  const connections = await Promise.all(Array.from({ length: count }, () => openConnection(server.url)))
  // It accepts connections in their order, so this response proves that it has accepted all.
  await server.request('/healthz')
  server.process.kill('SIGSTOP')
  for (const [index, connection] of connections.entries()) {
    const authorization = `Authorization: ${tokens[index % tokens.length]}`
    const all = [`${head} HTTP/1.1`, ...common, authorization, ...headers]
    connection.send(`${all.join('\r\n')}\r\n\r\n${body}`)
  }
  server.process.kill('SIGCONT')
  for (const connection of connections) {
    await until('the response', () => connection.received().length >= bytes)
    connection[Symbol.dispose]()
  }
}

const ofIds = (members: object) => () => JSON.stringify({ ids, ...members })
const none = () => ''

test.each<[string, count: number, lines: string[], body: () => string, bytes: number]>([
  ['lists of 500 items', 150, ['GET /api/items?limit=500'], none, 100_000],
  [
    'compressed lists by kind',
    60,
    ['GET /api/items?limit=500&kind=image', 'Accept-Encoding: gzip'],
    none,
    10_000,
  ],
  ['searches', 12, ['GET /api/items?limit=500&name=a'], none, 100],
  ['pages with 4,000 links', 20, ['GET /api/media?page=77', 'Accept-Encoding: gzip'], none, 20_000],
  ['recorded links of 500 items', 12, ['POST /api/links'], ofIds({ expires_in: 60 }), 50_000],
  ['links of 500 items', 80, ['POST /api/links'], ofIds({}), 50_000],
  ['deletes of 500 items', 12, ['DELETE /api/media'], ofIds({}), 1_000],
  ['lists of the trash', 150, ['GET /api/trash?limit=500'], none, 100_000],
])('K10 many %s at once leave the event loop to others', async (_name, count, lines, body, bytes) => {
  await watch()
  await send(count, lines, body(), bytes)
  expect(await longest()).toBeLessThan(longestTurn)
})

test('K10 many streams of items, which a fast client reads to their end, leave the event loop to others', async () => {
  await watch()
  const script = join(import.meta.dirname, '../../bench/loads/read-streams.ts')
  const streams = Array.from({ length: 30 }, (_, index) =>
    tokens[index % tokens.length]?.slice('Bearer '.length),
  )
  const list = `${file}-tokens`
  writeFileSync(list, streams.join('\n'))
  const client = spawn(process.execPath, [script, server.url, list, 'read'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const printed = client.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })
  await printed.next()
  client.stdin.end()
  expect(JSON.parse((await printed.next()).value)).toMatchObject({ refused: 0 })
  rmSync(list)
  expect(await longest()).toBeLessThan(longestTurn)
})
