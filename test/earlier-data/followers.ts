import { expect } from 'vitest'
import { type Receiver, respondWith, startReceiver } from '../harness/receiver.ts'
import type { TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { type parseChange, readChanges, readCreatedWebhook, readItems } from '../harness/wire.ts'

/** How the programs that follow a bucket reach it. After each start of the service it has another address. */
export interface Access {
  server: TestServer
  readonly authorization: string
}

/** Items and their captions. */
export type State = ReadonlyMap<string, string | null>

export const request = ({ server, authorization }: Access, path: string, init: RequestInit = {}) =>
  server.request(path, { ...init, headers: { authorization, ...init.headers } })

/** The items of the bucket, oldest first. */
export async function listState(access: Access): Promise<State> {
  const { data } = await readItems(await request(access, '/api/items?limit=500'))
  return new Map(data.map(({ id, caption }) => [id, caption]))
}

const sorted = (state: State) => [...state].toSorted(([one], [other]) => (one < other ? -1 : 1))

/** A program that knows the state of the bucket as of some moment. */
export interface Follower {
  readonly name: string
  /** Does what it does now and then. */
  step(): Promise<void>
  /** Does it until it has everything, and compares what it knows with the bucket. */
  check(): Promise<void>
}

type Change = ReturnType<typeof parseChange>

function apply(known: Map<string, string | null>, { item_id, item }: Pick<Change, 'item_id' | 'item'>): void {
  if (item === null) known.delete(item_id)
  else known.set(item_id, item.caption)
}

/** Follows the feed as FE4 says, with requests or with streams of events. */
export function followFeed(access: Access, transport: 'request' | 'stream', limit: number): Follower {
  let known = new Map<string, string | null>()
  let cursor: string | null = null

  async function begin(): Promise<void> {
    const { next_cursor } = await readChanges(await request(access, '/api/changes?since=now'))
    known = new Map(await listState(access))
    cursor = next_cursor
  }

  /** False at the end of the feed. */
  async function read(after: string): Promise<boolean> {
    const response = await request(access, `/api/changes?limit=${limit}&after=${after}`)
    if (response.status === 410) {
      await response.arrayBuffer()
      await begin()
      return true
    }
    const { data, next_cursor, has_more } = await readChanges(response)
    for (const change of data) apply(known, change)
    cursor = next_cursor
    return has_more
  }

  /** As read, until the stream has the last change of the feed. */
  async function stream(after: string): Promise<boolean> {
    const { next_cursor: end } = await readChanges(await request(access, '/api/changes?since=now'))
    const stopped = new AbortController()
    const response = await request(access, '/api/changes', {
      headers: { accept: 'text/event-stream', 'last-event-id': after },
      signal: stopped.signal,
    })
    if (response.status === 410) {
      await response.arrayBuffer()
      await begin()
      return true
    }
    expect(response.status).toBe(200)
    let text = ''
    try {
      for await (const chunk of response.body ?? []) {
        text += Buffer.from(chunk).toString()
        const blocks = text.split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) {
          cursor = /^id: (.+)$/m.exec(block)?.[1] ?? cursor
          const data = /^data: (.+)$/m.exec(block)?.[1]
          if (data !== undefined) apply(known, JSON.parse(data))
        }
        // `after` may be that of the first event, without data.
        if (cursor === end) break
      }
    } finally {
      stopped.abort()
    }
    return false
  }

  async function step(): Promise<boolean> {
    if (cursor === null) await begin()
    if (cursor === null) throw new Error('there is no cursor')
    return transport === 'request' ? read(cursor) : stream(cursor)
  }

  return {
    name: `a reader of the feed by ${transport}`,
    step: async () => void (await step()),
    async check() {
      while (await step());
      expect(sorted(known), this.name).toEqual(sorted(await listState(access)))
    },
  }
}

const cachedPaths = [
  '/api/media',
  '/api/media?page=2',
  '/api/items?limit=3&order=newest',
  '/api/items?per_page=2&page=2',
]

/** Keeps responses, and asks whether they have changed. */
export function cacheResponses(access: Access): Follower {
  const cached = new Map<string, { readonly etag: string; readonly body: string }>()

  async function refresh(path: string): Promise<void> {
    const before = cached.get(path)
    const headers = before === undefined ? {} : { 'if-none-match': before.etag }
    const response = await request(access, path, { headers })
    const body = await response.text()
    if (response.status === 304) return
    expect([200, 404]).toContain(response.status)
    if (response.status === 404) cached.delete(path)
    else cached.set(path, { etag: response.headers.get('etag') ?? '', body: withoutPort(body) })
  }

  const refreshAll = async () => {
    const ids = [...(await listState(access)).keys()].slice(-3)
    for (const path of [...cachedPaths, ...ids.map((id) => `/api/media/${id}`)]) await refresh(path)
  }
  return {
    name: 'a cache',
    step: refreshAll,
    async check() {
      await refreshAll()
      for (const path of [...cached.keys()]) await refresh(path)
      for (const [path, { body }] of cached) {
        const fresh = withoutPort(await (await request(access, path)).text())
        expect(withoutCursor(body), path).toBe(withoutCursor(fresh))
      }
    },
  }
}

/** Each start of the service has another port. */
const withoutPort = (body: string) => body.replaceAll(/127\.0\.0\.1:\d+/g, '')
const withoutCursor = (body: string) => body.replace(/"next_cursor":"[^"]*"/, '"next_cursor":"…"')

/** Reads the list by cursors, a response at a time. What it has read in the end has each item of the bucket. */
export function walkList(access: Access): Follower {
  let seen = new Set<string>()
  let cursor: string | null = null
  let hasEnded = true
  let isRefused = false

  async function step(): Promise<void> {
    if (hasEnded) {
      seen = new Set()
      cursor = null
    }
    const after = cursor === null ? '' : `&after=${cursor}`
    const response = await request(access, `/api/items?limit=2${after}`)
    isRefused = response.status === 400
    if (isRefused) {
      await response.arrayBuffer()
      hasEnded = true
      return
    }
    const { data, next_cursor } = await readItems(response)
    for (const { id } of data) seen.add(id)
    cursor = next_cursor
    hasEnded = next_cursor === null
  }

  return {
    name: 'a reader of the list',
    step,
    async check() {
      do await step()
      while (!hasEnded || isRefused)
      const missing = [...(await listState(access)).keys()].filter((id) => !seen.has(id))
      expect(missing, this.name).toEqual([])
    },
  }
}

/** A receiver of a webhook that knows the items from what it receives. */
export async function receiveWebhook(access: Access, batch: number) {
  const receiver: Receiver = await startReceiver()
  const response = await request(access, '/api/webhooks', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiver.url, batch }),
  })
  const { id, secret } = readCreatedWebhook(await response.json())
  receiver.secrets.add(secret)
  let known = new Map(await listState(access))
  let isRefusing = false
  receiver.respond = async (received, response) => {
    // The service may be stopped while the items are listed.
    const listed = received.type === 'changes.lost' ? await listState(access).catch(() => null) : known
    if (isRefusing || listed === null) return void respondWith(500)(received, response)
    known = new Map(listed)
    for (const { data } of received.changes)
      if (data.item === null) known.delete(data.item_id)
      else known.set(data.item_id, data.item.caption)
    response.writeHead(204).end()
  }

  /** What a receiver that ignores repetitions takes a message for. */
  const contentOf = ({ type, changes }: Receiver['received'][number]) =>
    JSON.stringify([type, changes.map(({ type, data }) => [type, data.number, data.item_id])])

  return {
    name: `a receiver of ${batch}`,
    async step() {
      isRefusing = !isRefusing
    },
    async check() {
      isRefusing = false
      const isEqual = async () => {
        // A success ends the wait after a failure.
        await (await request(access, `/api/webhooks/${id}/test`, { method: 'POST' })).arrayBuffer()
        return JSON.stringify(sorted(known)) === JSON.stringify(sorted(await listState(access)))
      }
      await until(`${this.name} knows the items`, isEqual).catch(async (error: unknown) => {
        expect(sorted(known), this.name).toEqual(sorted(await listState(access)))
        throw error
      })
      const contents = new Map<string, string>()
      for (const received of receiver.received) {
        const content = contentOf(received)
        expect(contents.get(received.id) ?? content, received.id).toBe(content)
        contents.set(received.id, content)
      }
      expect(receiver.refused).toEqual([])
    },
    close: receiver.close,
  } satisfies Follower & { close(): Promise<void> }
}
