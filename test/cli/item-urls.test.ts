import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { runClient } from './client-run.ts'

const [base, files, copy] = [
  'https://media.example.org',
  'https://files.example.net',
  'https://copy.example.org',
]

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_BASE_URL: base, MEDIABUCKET_MEDIA_BASE_URL: files })
})
afterAll(() => server[Symbol.asyncDispose]())

let bucket: string
let run: (...args: string[]) => ReturnType<typeof runClient>
let client: ReturnType<typeof createClient>
let id: string
beforeEach(async () => {
  bucket = uniqueName('urls')
  const { token } = await makeToken(server, '--bucket', bucket)
  await server.command('bucket', 'set', bucket, '--trash-days', '1')
  const service = { url: server.url, token }
  run = (...args) => runClient(service, ...args)
  client = createClient(service)
  ;({ id } = await client.upload(Buffer.from('text'), { filename: 'a.txt' }))
})

/** Commands that take items, as arguments for a reference and a directory. */
const commands: readonly (readonly [
  name: string,
  args: (reference: string, to: string) => readonly string[],
])[] = [
  ['edit', (reference) => ['edit', reference, '--caption', 'new']],
  ['link', (reference) => ['link', reference]],
  ['get -d', (reference, to) => ['get', '-d', to, reference]],
  ['rm', (reference) => ['rm', reference]],
  ['trash restore', (reference) => ['trash', 'restore', reference]],
]

test.each(commands)('%s refuses the URL of another service, and names both', async (name, args) => {
  await using directory = await temporaryDirectory()
  const to = join(directory.path, 'to')
  await mkdir(to)
  const { id: other } = await client.upload(Buffer.from('other'), { filename: 'b.txt' })
  if (name === 'trash restore') await client.deleteMany([id, other])
  const url = `${copy}/media/${id}.txt`
  for (const references of [[url], [other, url]]) {
    const [command = '', ...rest] = args(url, to)
    const given = name === 'edit' ? [command, ...rest] : [command, ...rest.slice(0, -1), ...references]
    const { code, stdout, stderr } = await run(...given)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(
      `${url} is a URL of ${copy}, and the service of the command is ${server.url}, with items at ${files}. Name the service with --url or --profile, or the item by its ID`,
    )
  }
  expect(await readdir(to)).toEqual([])
  const left: unknown[] = []
  for await (const item of name === 'trash restore' ? client.trash() : client.items()) left.push(item.caption)
  expect(left).toEqual([null, null])
})

test('a URL of an item is accepted at the URL of the command, and where the service says that its items are', async () => {
  for (const origin of [server.url, files]) {
    await using directory = await temporaryDirectory()
    const url = `${origin}/media/${id}.txt`
    for (const [name, args] of commands)
      expect([name, (await run(...args(url, directory.path))).code]).toEqual([name, 0])
    expect(await readdir(directory.path)).toEqual(['a.txt'])
    expect((await client.describe(id)).caption).toBe('new')
  }
})

test('a token that reads nothing deletes by an ID and by a URL of the command', async () => {
  const { token } = await makeToken(server, '--bucket', bucket, '--scope', 'media:delete')
  const service = { url: server.url, token }
  const refused = await runClient(service, 'rm', `${files}/media/${id}.txt`)
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('or the item by its ID')])
  expect((await runClient(service, 'rm', `${server.url}/media/${id}.txt`)).code).toBe(0)
})
