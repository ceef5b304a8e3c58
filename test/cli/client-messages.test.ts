import { beforeAll, expect, test } from 'vitest'
import { freePort } from '../harness/free-port.ts'
import { seed } from '../harness/seed.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { lines, runClient } from './client-run.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const run = (...args: string[]) => runClient(server, ...args)

const withoutSecret = /^mediabucket: The URL of an item must not contain a user name or password\n$/

test.each([
  [['ls', '--page', '0'], /--page takes a whole number of at least 1, not "0"/],
  [['ls', '--page', '1e3'], /not "1e3"/],
  [['ls', '--page', '1', '--all'], /--page or --all, not both/],
  [['ls', '--newest', '--page', '1'], /--page, or --newest, --kind and --name, not both/],
  [['ls', '--kind', 'images'], /--kind takes one of image, video, audio, document, other, not "images"/],
  [['ls', '--name'], /--name needs a value/],
  [['ls', '--name', ''], /--name takes one text of 1 to 8 words and up to 200 characters, not ""\n$/],
  [['ls', '--name', ' '], /--name takes one text of 1 to 8 words/],
  [['ls', '--name', '1 2 3 4 5 6 7 8 9'], /--name takes one text of 1 to 8 words/],
  [['ls', 'more'], /mediabucket ls --help/],
  [['get'], /get takes one ID or URL/],
  [['get', 'a', 'b'], /get takes one ID or URL/],
  [['get', '../etc/passwd'], /"..\/etc\/passwd" is neither the ID nor the URL of an item/],
  [['get', 'a', '-o', ''], /-o takes the path of a file/],
  [['rm'], /rm takes the IDs or URLs/],
  [['rm', 'http://h.example/x'], /"http:\/\/h.example\/x" is neither the ID nor the URL of an item/],
  [['link', 'http://h.example/media/'], /neither the ID nor the URL/],
  [['trash', 'restore', 'http://h.example/media/x/y'], /neither the ID nor the URL/],
  [
    ['rm', 'http://h.example/media/a%20b'],
    /"http:\/\/h.example\/media\/a%20b" is neither the ID nor the URL/,
  ],
  [['rm', 'http://h.example/media/a@b'], /"http:\/\/h.example\/media\/a@b" is neither/],
  [['rm', ' http://h.example/media/a'], /neither the ID nor the URL/],
  [['get', 'http://me:secret@h.example/media/x'], withoutSecret],
  [['get', ' HTTP://me:secret@h.example/'], withoutSecret],
  [['rm', 'ftp://me:secret@h.example/'], withoutSecret],
  [['rm', 'http://me:secret@h example/'], /^mediabucket: An argument with an @ is neither[^@]*$/],
  [['link', 'a', '--variant'], /--variant needs a value/],
  [['edit', '--caption', 'x'], /edit takes one ID or URL/],
  [['edit', 'a'], /edit takes --filename, --alt-text or --caption/],
  [['edit', 'a', '--title', 'x'], /there is no option --title/],
  [['rm', 'a', 'ftp://h.example/media/x'], /neither the ID nor the URL/],
  [['upload'], /upload takes files and directories/],
  [['upload', '--fast', 'x'], /--fast[\s\S]*mediabucket upload --help/],
  [['whoami', 'really'], /mediabucket whoami --help/],
])('invalid arguments exit with 2: %j', async (args, message) => {
  expect(await run(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
})

test.each<[string, { url?: string; token?: string }, string[], number, RegExp]>([
  ['no token', { token: '' }, ['ls'], 2, /MEDIABUCKET_TOKEN is not set\. To create a token, .*token create/],
  ['a token with spaces', { token: 'a b' }, ['ls'], 2, /MEDIABUCKET_TOKEN is invalid/],
  ['an unknown token', { token: 'mbkt_nope' }, ['whoami'], 3, /rejects the token: .*MEDIABUCKET_TOKEN/],
  [
    'a URL without its scheme',
    { url: '127.0.0.1:8080' },
    ['ls'],
    2,
    /MEDIABUCKET_URL \("127\.0\.0\.1:8080"\) is invalid: .*\. Example: http:\/\/127\.0\.0\.1:8080$/m,
  ],
  [
    'a URL with a password',
    { url: 'http://me:mbkt_nope@h.example' },
    ['ls'],
    2,
    /MEDIABUCKET_URL is invalid: .*password/,
  ],
  [
    'a server that is down',
    { url: 'http://127.0.0.1:1' },
    ['ls'],
    1,
    /no connection to .*Is the service running/,
  ],
])('%s: the message contains a remedy', async (_name, wrong, args, code, message) => {
  const result = await runClient({ url: server.url, token: server.token, ...wrong }, ...args)
  expect(result).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) })
  expect(lines(result.stderr)).toHaveLength(1)
  expect(result.stderr).not.toMatch(/mbkt_nope|\.[jt]s:/)
})

test('get of a URL of another server names that server in its errors', async () => {
  await using other = await startServer({ MEDIABUCKET_PORT: `${await freePort()}` })
  const url = `${other.url}/media/${'0'.repeat(26)}`
  const missing = await run('get', url)
  expect(missing).toMatchObject({ code: 4, stdout: '' })
  expect(missing.stderr).toContain(`mediabucket: ${other.url} responded: `)
  expect(missing.stderr).toContain('so no token was sent')
  await other.stop()
  const closed = `mediabucket: no connection to ${other.url} (ECONNREFUSED). Check the URL.\n`
  expect(await run('get', url)).toMatchObject({ code: 1, stdout: '', stderr: closed })
  const unknown = await run('get', 'http://no-such-host.invalid/x.png')
  expect(unknown.stderr).toMatch(/^mediabucket: no connection to http:\/\/no-such-host\.invalid \(/)
})

test('a service URL with an unknown path exits with 4, and names the URL and its setting', async () => {
  const url = `${server.url}/elsewhere`
  const result = await runClient({ url, token: server.token }, 'ls')
  expect(result).toMatchObject({
    code: 4,
    stdout: '',
    stderr: `mediabucket: ${url} responded: The service has no such path. Check MEDIABUCKET_URL.\n`,
  })
})

test('W5 a command that waits for the rate limit says so, and completes', async () => {
  await using limited = await startServer({ MEDIABUCKET_TOKEN_RATE: '2/3s' })
  const { token } = await seed(limited, '--items', '21')
  const result = await runClient({ url: limited.url, token }, 'ls', '--all')
  expect([result.code, lines(result.stdout).length]).toEqual([0, 21])
  expect(result.stderr).toMatch(/^The service limits the rate of requests; retrying in [1-4] s\.\n$/)
})
