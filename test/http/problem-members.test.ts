import { afterAll, beforeAll, expect, test } from 'vitest'
import { scopes } from '../../packages/server/src/core/token-rules.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { tusOf } from '../harness/tus.ts'
import { upload } from '../harness/upload.ts'
import { parseProblem } from '../harness/wire.ts'

let server: TestServer
let authorization: string
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '1kB' })
  authorization = (await makeToken(server, '--bucket', 'default', '--scope', scopes.join(','))).authorization
})
afterAll(() => server[Symbol.asyncDispose]())

const get = (path: string) => server.request(path, { headers: { authorization } })
const send = (method: string, path: string, body: unknown, type = 'application/json') =>
  server.request(path, {
    method,
    headers: { authorization, 'content-type': type },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

const tus = (method: string, path: string, headers: Record<string, string>) =>
  tusOf(server).send(method, path, headers)
const field = (value: string) => `--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n${value}\r\n`
const part = field('x')

const itemsQuery = {
  ...{ limit: '0', order: 'up', start_name: 'x'.repeat(300), kind: 'x', from: 'x', name: 'x'.repeat(201) },
  ...{ sha256: 'x', path: 'x'.repeat(2000), page: '0', per_page: '101' },
}
const tokenBody = {
  ...{ scopes: [], name: 'x'.repeat(201), note: 'x'.repeat(2001), expires_at: 1 },
  limits: { max_items: 0, max_bytes: 0, max_file_size: 0, types: [], item_days: 0, labels: 1, others: 1 },
}

/** Requests whose problems state limits or lists, by what they send. */
const requests: Readonly<Record<string, () => Promise<Response>>> = {
  'all parameters of a list': () => get(`/api/items?${new URLSearchParams(itemsQuery)}`),
  'the parameters of the feed': () => get('/api/changes?limit=501&wait=61&since=x'),
  'the parameters of the trash': () => get('/api/trash?limit=x'),
  'urls of an item': async () => get(`/api/media/${(await upload(server, 'x')).id}?urls=x`),
  'a page number': () => get('/api/media?page=0'),
  'a variant and its wait': async () => get(`${new URL((await upload(server, 'x')).url).pathname}?variant=x`),
  'a wait for a variant': async () =>
    get(`${new URL((await upload(server, 'x')).url).pathname}?variant=thumb&wait=61`),
  'members of a token': () => send('POST', '/api/tokens', tokenBody),
  'no limits': () => send('POST', '/api/tokens', { scopes: ['media:read'], limits: {} }),
  'members of a replacement': () => send('POST', '/api/tokens/tok_x/rotate', { overlap_seconds: -1 }),
  'members of a webhook': () => send('POST', '/api/webhooks', { url: 'x', kinds: ['x'], batch: 0 }),
  'the state of a webhook': () => send('PATCH', '/api/webhooks/wh_x', { state: 'x' }),
  'the overlap of secrets': () => send('POST', '/api/webhooks/wh_x/rotate', { overlap_seconds: -1 }),
  'members of links': () => send('POST', '/api/links', { ids: ['x'], expires_in: 0, variant: 'x' }),
  'no ids': () => send('DELETE', '/api/media', { ids: [] }),
  'an unknown member': () => send('DELETE', '/api/media', { ids: ['x'], more: 1 }),
  'texts of an item': () =>
    send('PATCH', '/api/media/x', { alt_text: 'x'.repeat(1001), caption: 'x'.repeat(5001) }),
  'another type': () => send('DELETE', '/api/media', {}, 'text/plain'),
  'a long JSON body': () => send('DELETE', '/api/media', { ids: ['x'.repeat(200_000)] }),
  'a body where none is': () => send('DELETE', '/api/media/x', 'x'.repeat(100_000)),
  'a large file': () => send('POST', '/api/media', 'x'.repeat(1001), 'text/plain'),
  'the length of a large file': () => tus('POST', '/api/uploads', { 'upload-length': '1001' }),
  'a chunk of another type': async () => {
    const url = await tusOf(server).createWithLength(2)
    return await tusOf(server).sendChunk(url, 0, 'x', { 'content-type': 'text/plain' })
  },
  'a checksum of another algorithm': () =>
    tusOf(server)
      .createWithLength(2)
      .then((url) => tusOf(server).sendChunk(url, 0, 'x', { 'upload-checksum': 'md5 eA==' })),
  'too many parts': () =>
    send('POST', '/api/media', `${part.repeat(1001)}--b--`, 'multipart/form-data; boundary=b'),
  'a large field': () =>
    send('POST', '/api/media', `${field('x'.repeat(1_000_001))}--b--`, 'multipart/form-data; boundary=b'),
}

type Problem = ReturnType<typeof parseProblem>
type Members = Partial<Pick<Problem, 'accepted' | 'minimum' | 'maximum' | 'unit' | 'members'>>

/** What the words of a detail state. Labels have limits of several kinds, which have no members. */
function membersIn(detail: string): Members {
  if (/ labels: /.test(detail)) return {}
  const [, list] = /(?:one of|or more of|array of): ([^.;]*(?:\.\d[^.;]*)*)[.;]/i.exec(detail) ?? []
  const [, least, most] = /from (\d+)(?: to (\d+))?/.exec(detail) ?? []
  const [, fewest, greatest] = /array of (\d+) to (\d+)/.exec(detail) ?? []
  const [, size, unit] =
    /(?:at most|up to|more than|limit of|no more than) (\d+) (bytes|characters)/i.exec(detail) ?? []
  const number = (text: string | undefined) => (text === undefined ? undefined : Number(text))
  const [minimum, maximum] = [number(least ?? fewest), number(most ?? greatest ?? size)]
  const names = list?.split(', ')
  const isMembers = /^An object with/.test(detail)
  return {
    ...(names !== undefined && (isMembers ? { members: names } : { accepted: names })),
    ...(minimum !== undefined && { minimum }),
    ...(maximum !== undefined && { maximum }),
    ...(unit !== undefined && { unit }),
  }
}

test.each(Object.entries(requests))('P6 %s: members state what the details do', async (_what, request) => {
  const response = await request()
  const problem = parseProblem(await response.text())
  const faults = problem.errors ?? [problem]
  const stated = faults.map((fault) => ({ ...fault, ...membersIn(fault.detail) }))
  expect(faults).toEqual(stated)
  expect(stated.some(({ accepted, maximum, members }) => accepted ?? maximum ?? members)).toBe(true)
})

test('P6, K11 the members of a search state the limit that its text exceeds', async () => {
  for (const [name, limit] of [
    ['1 2 3 4 5 6 7 8 9', { minimum: 1, maximum: 8, unit: 'words' }],
    [' ', { minimum: 1, maximum: 8, unit: 'words' }],
    ['x'.repeat(201), { maximum: 200, unit: 'characters' }],
  ] as const) {
    const problem = await expectProblem(
      await get(`/api/items?${new URLSearchParams({ name })}`),
      400,
      'parameter-malformed',
    )
    expect(problem.errors).toEqual([{ parameter: 'name', detail: problem.detail, ...limit }])
  }
})

test('P6, T5 a problem names the scopes that the token lacks', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'default', '--scope', 'tokens:manage')
  const response = await server.request('/api/tokens', {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ scopes: ['media:read', 'media:delete'] }),
  })
  const problem = await expectProblem(response, 403, 'scope-missing')
  expect(problem.errors).toMatchObject([{ parameter: 'scope', missing: ['media:read', 'media:delete'] }])
})
