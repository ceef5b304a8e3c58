import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Connection, openConnection } from '../harness/connection.ts'
import { scrape } from '../harness/scrape.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

/** Their responses are several times the limit of N6. */
const connectionCount = 200

/** The limit of N6. */
const maxUnread = 268_435_456

let server: TestServer
beforeAll(async () => {
  server = await startServer({
    MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '0',
    MEDIABUCKET_IDLE_TIMEOUT: '10m',
  })
  const text = (length: number) => '🖼'.repeat(length)
  const labels = (item: number) =>
    Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`key-${at}`, `${item} ${text(190)}`]))
  for (let index = 0; index < 200; index += 1) {
    const { id } = await upload(server, 'x', { name: `${index}.txt` })
    const response = await server.request(`/api/media/${id}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body: JSON.stringify({ caption: text(5_000), alt_text: text(1_000), labels: labels(index) }),
    })
    expect(response.status).toBe(200)
  }
}, 120_000)
afterAll(() => server[Symbol.asyncDispose]())

/** What the connections request. The texts of all items are eight megabytes. */
const requests = {
  'lists of 500 items': ['GET /api/items?limit=500', 'Accept: application/json'],
  labels: ['GET /api/labels?limit=500', 'Accept: application/json'],
  'changes of an old cursor': ['GET /api/changes?limit=500', 'Accept: application/json'],
  'events of an old cursor': ['GET /api/changes', 'Accept: text/event-stream'],
} as const

test('N6, N7 responses to hundreds of connections that nobody reads hold bounded memory, and others are served', async () => {
  const first = await (await server.request('/api/changes?limit=1')).text()
  const cursor = /"next_cursor":"([^"]+)"/.exec(first)?.[1]
  const connections: Connection[] = []
  // Seven of ten connections are streams.
  const kinds = Object.values(requests)
  let most = 0
  for (let index = 0; index < connectionCount; index += 1) {
    const [line, accept] = kinds[index % 10] ?? requests['events of an old cursor']
    const connection = await openConnection(server.url)
    connection.pause()
    const target = line.startsWith('GET /api/changes')
      ? `${line}${line.includes('?') ? '&' : '?'}after=${cursor}`
      : line
    connection.send(
      `${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\n${accept}\r\n\r\n`,
    )
    connections.push(connection)
    if (index % 100 === 99) most = Math.max(most, (await scrape(server)).value('unread_response_bytes') ?? 0)
  }
  await until('all streams are open', async () => {
    const { value } = await scrape(server)
    most = Math.max(most, value('unread_response_bytes') ?? 0)
    return value('feed_streams_open') === 0.7 * connectionCount
  })
  for (let round = 0; round < 3; round += 1) {
    const response = await server.request('/api/items?limit=1')
    expect(response.status).toBe(200)
    most = Math.max(most, (await scrape(server)).value('unread_response_bytes') ?? 0)
  }
  expect(most).toBeLessThan(maxUnread)
  for (const connection of connections) connection[Symbol.dispose]()
  await until('nothing is left', async () => (await scrape(server)).value('unread_response_bytes') === 0)
})
