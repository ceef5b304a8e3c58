import { afterAll, beforeAll, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { readEvents } from '../harness/events.ts'
import { expectProblem } from '../harness/problem.ts'
import { catalogRows } from '../harness/rows.ts'
import { seed } from '../harness/seed.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { type parseChange, readChanges, readItem, readItems } from '../harness/wire.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MAX_STREAMS_PER_TOKEN: '5' })
})
afterAll(() => server[Symbol.asyncDispose]())

/** A new bucket, and requests with a token for it. */
async function newBucket(...settings: string[]) {
  const bucket = uniqueName('feed')
  const { id, authorization } = await makeToken(server, '--bucket', bucket)
  if (settings.length > 0) await runHere(server.data, 'bucket set', bucket, ...settings)
  const request = (path: string, init: RequestInit = {}) =>
    server.request(path, { ...init, headers: { authorization, ...init.headers } })
  const send = (method: string, path: string, body: object) =>
    request(path, { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
  return {
    ...{ bucket, id, authorization, request, send },
    upload: (text: string) => upload(server, text, { authorization }),
    remove: (itemId: string) => request(`/api/media/${itemId}`, { method: 'DELETE' }),
    changes: async (query = '') => readChanges(await request(`/api/changes${query}`)),
    async events(query = '', headers: Record<string, string> = {}) {
      const response = await request(`/api/changes${query}`, {
        headers: { accept: 'text/event-stream', ...headers },
      })
      expect(response.headers.get('content-type')).toBe('text/event-stream')
      return readEvents(response)
    },
  }
}

const brief = ({ type, item_id, item }: Awaited<ReturnType<typeof readChanges>>['data'][number]) => [
  type,
  item_id,
  item?.id ?? null,
]

test('FE1, FE3, FE4 the feed has each change with its item; a reader continues after each cursor', async () => {
  const bucket = await newBucket('--trash-days', '3')
  const start = await bucket.changes('?since=now')
  expect(start).toMatchObject({ data: [], has_more: false })
  const [one, two] = [await bucket.upload('one'), await bucket.upload('two')]
  const edited = await readItem(await bucket.send('PATCH', `/api/media/${two.id}`, { caption: 'x' }))
  await bucket.remove(one.id)
  await bucket.send('POST', '/api/trash/restore', { ids: [one.id] })
  await bucket.remove(one.id)
  await bucket.send('DELETE', '/api/trash', { all: true })
  const all = await bucket.changes()
  expect(all.data.map(brief)).toEqual([
    ['added', one.id, null],
    ['added', two.id, two.id],
    ['edited', two.id, two.id],
    ['trashed', one.id, null],
    ['restored', one.id, null],
    ['trashed', one.id, null],
    ['removed', one.id, null],
  ])
  expect(all.data[1]?.item).toEqual(edited)
  expect(all.has_more).toBe(false)
  expect(await bucket.changes(`?after=${start.next_cursor}`)).toEqual(all)
  for (const [index, { cursor }] of all.data.entries())
    expect((await bucket.changes(`?after=${cursor}&limit=100`)).data).toEqual(all.data.slice(index + 1))
  const some = await bucket.changes('?limit=3')
  expect(some).toEqual({ data: all.data.slice(0, 3), next_cursor: all.data[2]?.cursor, has_more: true })

  const response = await bucket.request('/api/changes')
  expect(response.headers.get('cache-control')).toBe('private, no-store')
  expect(response.headers.get('vary')).toBe('Authorization, Mediabucket-Bucket, Accept')
  const head = await bucket.request('/api/changes', { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
})

test('FE3 parameters are checked, and the URLs of a private bucket are signed on request', async () => {
  const bucket = await newBucket()
  for (const query of ['limit=0', 'limit=501', 'wait=61', 'wait=-1', 'wait=x', 'since=then', 'urls=x'])
    await expectProblem(await bucket.request(`/api/changes?${query}`), 400, 'parameter-malformed')
  const { next_cursor } = await bucket.changes()
  await expectProblem(
    await bucket.request(`/api/changes?since=now&after=${next_cursor}`),
    ...([400, 'parameter-malformed'] as const),
  )
  await runHere(server.data, 'bucket set', bucket.bucket, '--private', 'on')
  await bucket.upload('secret')
  const urlOf = async (query: string) => (await bucket.changes(query)).data[0]?.item?.url ?? ''
  expect((await fetch(await urlOf(''))).status).toBe(404)
  expect((await fetch(await urlOf('?urls=signed'))).status).toBe(200)
  const stream = readEvents(
    await bucket.request('/api/changes?urls=signed', {
      headers: { accept: 'text/event-stream', 'last-event-id': next_cursor },
    }),
  )
  expect((await fetch((await stream.first(1))[0]?.change.item?.url ?? '')).status).toBe(200)
  const writer = await makeToken(server, '--bucket', bucket.bucket, '--scope', 'media:write')
  const { authorization } = writer
  await expectProblem(
    await server.request('/api/changes', { headers: { authorization } }),
    403,
    'scope-missing',
  )
})

test('FE5 a cursor of another bucket is refused, as is a text that is none', async () => {
  const [bucket, other] = [await newBucket(), await newBucket()]
  await bucket.upload('one')
  const { next_cursor } = await bucket.changes()
  const expired = async (query: string) =>
    expectProblem(await other.request(`/api/changes?after=${query}`), 410, 'cursor-expired')
  await expired(next_cursor)
  for (const text of ['x', '', `${next_cursor}.`, `${next_cursor}AA`])
    await expectProblem(await other.request(`/api/changes?after=${text}`), 400, 'cursor-malformed')
  const response = await other.request('/api/changes', {
    headers: { accept: 'text/event-stream', 'last-event-id': next_cursor },
  })
  await expectProblem(response, 410, 'cursor-expired')
  const headers = { accept: 'text/event-stream', 'last-event-id': 'x' }
  const refused = await other.request('/api/changes', { headers })
  const { errors } = await expectProblem(refused, 400, 'cursor-malformed')
  expect(errors?.map(({ parameter }) => parameter)).toEqual(['Last-Event-ID'])
})

test('FE6 a response waits for the first change, and for no longer than requested', async () => {
  const bucket = await newBucket()
  const { next_cursor } = await bucket.changes('?since=now')
  const started = performance.now()
  expect(await bucket.changes(`?after=${next_cursor}&wait=1`)).toEqual({
    ...{ data: [], next_cursor, has_more: false },
  })
  expect(performance.now() - started).toBeGreaterThan(900)
  const waiting = bucket.changes('?since=now&wait=60')
  // Only if it has begun, the upload is later.
  await until('the request waits', async () =>
    /mediabucket_feed_streams_open 1/.test(await (await fetch(`${server.url}/metrics`)).text()),
  )
  const item = await bucket.upload('one')
  const { data } = await waiting
  expect(data.map(brief)).toEqual([['added', item.id, item.id]])
  expect((await bucket.changes(`?after=${next_cursor}&wait=60`)).data).toEqual(data)
})

test('FE6 a waiting request is refused when its token is revoked', async () => {
  const bucket = await newBucket()
  const { id, authorization } = await makeToken(server, '--bucket', bucket.bucket)
  const waiting = server.request('/api/changes?since=now&wait=60', { headers: { authorization } })
  await runHere(server.data, 'token revoke', id)
  await expectProblem(await waiting, 401, 'token-revoked')
})

/** Cursors of one change differ by how far the feed was read (FE3). */
const withoutCursor = ({ cursor: _, ...rest }: ReturnType<typeof parseChange>) => rest

test('FE2, FE7 a stream has the changes as they happen, and continues without gap and repetition', async () => {
  const bucket = await newBucket()
  await bucket.upload('before')
  const stream = await bucket.events()
  await until('the id of the beginning', () => stream.state.lastId)
  const beginning = stream.state.lastId
  expect(stream.state.retry).toBe('1000')
  const ids: string[] = []
  for (let number = 0; number < 4; number += 1) {
    ids.push((await bucket.upload(`file ${number}`)).id)
    await stream.first(number + 1)
  }
  const all = await bucket.changes(`?after=${beginning}`)
  expect(stream.events.map(({ change }) => withoutCursor(change))).toEqual(all.data.map(withoutCursor))
  expect(stream.events.map(({ id }) => id)).toEqual(stream.events.map(({ change }) => change.cursor))
  expect(all.data.map(({ item_id }) => item_id)).toEqual(ids)
  for (const [start, headers] of [
    [1, { 'last-event-id': all.data[0]?.cursor ?? '' }],
    [0, { 'last-event-id': beginning }],
  ] as const) {
    const again = await bucket.events('?after=ignored', headers)
    const wanted = all.data.slice(start)
    await again.first(wanted.length)
    await bucket.upload(`after ${start}`)
    const events = await again.first(wanted.length + 1)
    expect(events.slice(0, wanted.length).map(({ change }) => withoutCursor(change))).toEqual(
      wanted.map(withoutCursor),
    )
  }
  const json = await bucket.request('/api/changes', {
    headers: { accept: 'application/json, text/event-stream;q=0.5' },
  })
  expect(json.headers.get('content-type')).toBe('application/json; charset=utf-8')
  const head = await bucket.request('/api/changes', {
    method: 'HEAD',
    headers: { accept: 'text/event-stream' },
  })
  expect([head.headers.get('content-type'), await head.text()]).toEqual(['text/event-stream', ''])
})

test('FE7 more changes than one read has are all sent', async () => {
  const bucket = await newBucket()
  const { next_cursor } = await bucket.changes()
  const body = () => {
    const form = new FormData()
    for (let number = 0; number < 50; number += 1) form.append('file', new File([`${number}`], 'a.txt'))
    return form
  }
  for (let round = 0; round < 5; round += 1)
    await bucket.request('/api/media', { method: 'POST', body: body() })
  const stream = await bucket.events(`?after=${next_cursor}`)
  const events = await stream.first(250)
  const { data } = await readItems(await bucket.request('/api/items?limit=500'))
  expect(events.map(({ change }) => change.item_id)).toEqual(data.map(({ id }) => id))
})

test('FE8, A7 a stream ends when its token is revoked, and has no later change', async () => {
  const bucket = await newBucket()
  const { id, authorization } = await makeToken(server, '--bucket', bucket.bucket)
  const stream = await bucket.events('', { authorization })
  const item = await bucket.upload('one')
  await stream.first(1)
  await runHere(server.data, 'token revoke', id)
  await stream.end()
  await bucket.upload('two')
  expect(stream.events.map(({ change }) => change.item_id)).toEqual([item.id])
  expect(stream.state.error).toBeNull()
})

test('FE1, FE8 the deletion of a bucket ends its streams', async () => {
  const bucket = await newBucket()
  const stream = await bucket.events()
  await bucket.upload('one')
  await stream.first(1)
  await server.command('bucket', 'delete', bucket.bucket, '--yes')
  await stream.end()
})

test('FE8 a token has a limited number of streams and waiting requests', async () => {
  const bucket = await newBucket()
  const streams = await Promise.all(Array.from({ length: 4 }, () => bucket.events()))
  // One place is left: of two equal requests, one waits and the other is refused.
  const responses: Response[] = []
  const both = [1, 2].map(async () => {
    responses.push(await bucket.request('/api/changes?since=now&wait=60'))
  })
  const refused = await until('a refusal', () => responses.find(({ status }) => status === 429))
  expect(refused.headers.get('retry-after')).toBe('2')
  await expectProblem(refused, 429, 'streams-too-many')
  expect((await bucket.request('/api/changes')).status).toBe(200)
  await bucket.upload('one')
  await Promise.all(both)
  const waited = responses.filter((response) => response !== refused)
  expect(await Promise.all(waited.map((response) => response.json()))).toMatchObject([
    { data: [{ type: 'added' }] },
  ])
  for (const stream of streams) await stream.first(1)
  expect((await bucket.events()).state.error).toBeNull()
})

test('FE9 a change by a command reaches a stream', async () => {
  const bucket = await newBucket()
  const stream = await bucket.events()
  await seed(server, '--items', '3', '--bucket', bucket.bucket)
  await stream.first(3)
})

test('FE6, FE8 a stop of the service ends streams and waiting requests', async () => {
  await using own = await startServer()
  const response = await own.request('/api/changes', { headers: { accept: 'text/event-stream' } })
  const stream = readEvents(response)
  const waiting = own.request('/api/changes?since=now&wait=60')
  await until('both are open', async () =>
    /mediabucket_feed_streams_open 2/.test(await (await fetch(`${own.url}/metrics`)).text()),
  )
  const stopped = own.stop()
  expect(await (await waiting).json()).toMatchObject({ data: [] })
  await stream.end()
  expect(stream.state.error).toBeNull()
  expect(Number(stream.state.retry)).toBeGreaterThanOrEqual(1_000)
  expect(await stopped).toBe(0)
})

test('FE1 a change of a kind that only a later version knows is passed on as unknown', async () => {
  const bucket = await newBucket()
  const item = await bucket.upload('x')
  const rows = await catalogRows(server.data)
  await rows.change(`UPDATE changes SET kind = 99 WHERE item_id = '${item.id}'`)
  expect((await bucket.changes()).data.map(brief)).toEqual([['unknown', item.id, item.id]])
  await bucket.remove(item.id)
  expect((await bucket.changes()).data.map(brief)).toEqual([
    ['unknown', item.id, null],
    ['removed', item.id, null],
  ])
})
