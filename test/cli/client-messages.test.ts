import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { foreignPage, sendJson, startForeign } from '../client/foreign-service.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { freePort } from '../harness/free-port.ts'
import { seed } from '../harness/seed.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { type CommandResult, commandLine, lines, runClient } from './client-run.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const run = (...args: string[]) => runClient(server, ...args)

const asUnknown = ['--user', '--map-user=54321', '--map-group=54321']

/** Runs a command for a user without a home directory: HOME is not set, and the system has no entry for the number of the user. */
async function runHomeless(settings: Readonly<Record<string, string | undefined>>, ...args: string[]) {
  const { command, env } = commandLine(server, ...args)
  const { XDG_STATE_HOME: _, XDG_CONFIG_HOME: __, ...rest } = { ...env, ...settings }
  return await promisify(execFile)('unshare', [...asUnknown, ...command], { env: rest }).then(
    (output) => ({ code: 0, ...output }),
    (failure: CommandResult) => failure,
  )
}

/** Containers and some distributions forbid that users map their numbers. */
const canUnshare = (): Promise<boolean> =>
  promisify(execFile)('unshare', [...asUnknown, 'true']).then(
    () => true,
    () => false,
  )

test.skipIf(process.env['CI'] === undefined && !(await canUnshare()))(
  'without a home directory, only what is stored there is missing',
  async () => {
    await using directory = await temporaryDirectory()
    const file = join(directory.path, 'homeless.txt')
    await writeFile(file, 'text')
    const stored = await runHomeless({}, 'upload', file)
    expect([stored.code, stored.stderr]).toEqual([
      0,
      expect.stringContaining('this user has no home directory. Set HOME or XDG_STATE_HOME to a directory'),
    ])
    expect(await runHomeless({}, 'ls', '--name', 'homeless')).toMatchObject({ code: 0, stderr: '' })
    const unknown = await runHomeless({ MEDIABUCKET_TOKEN: undefined }, 'ls')
    expect(unknown.stderr).toMatch(/^mediabucket: MEDIABUCKET_TOKEN is not set/)
  },
)

const withoutSecret = /^mediabucket: The URL of an item must not contain a user name or password\n$/

const invalid: readonly [args: readonly string[], message: RegExp][] = [
  [['ls', '--page', '0'], /--page takes a whole number of at least 1, not "0"/],
  [['ls', '--page', '1e3'], /not "1e3"/],
  [['ls', '--page', '1', '--all'], /--page or --all, not both/],
  [['ls', '--newest', '--page', '1'], /--page, or --newest, .*, not both/],
  [['ls', '--newest', '--order', 'taken'], /--newest or --order, not both/],
  [
    ['ls', '--order', 'size'],
    /--order takes one of oldest, newest, taken, taken-desc, name, name-desc, not "size"/,
  ],
  [['ls', '--kind', 'images'], /--kind takes one of image, video, audio, document, other, not "images"/],
  [['ls', '--name'], /--name needs a value/],
  [['ls', '--name', ''], /--name takes a text of 1 to 8 words, not ""\n$/],
  [['ls', '--name', ' '], /--name takes a text of 1 to 8 words/],
  [['ls', '--name', '1 2 3 4 5 6 7 8 9'], /--name takes a text of 1 to 8 words/],
  [['ls', 'more', 'paths'], /ls takes one path/],
  [['get'], /get takes one ID, URL or path/],
  [['get', 'a', 'b'], /get takes one ID, URL or path/],
  [['get', '../etc/passwd'], /"..\/etc\/passwd" is neither the ID nor the URL nor the path of an item/],
  [['get', 'a', '-o', ''], /-o takes the path of a file/],
  [['rm'], /rm takes the IDs, URLs or paths/],
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
  [['edit', '--caption', 'x'], /edit takes one ID, URL or path/],
  [['edit', 'a'], /edit takes --filename, .* or --focus/],
  [['edit', 'a', '--focus', '0.5'], /--focus takes two numbers from 0 to 1 .* not "0.5"/],
  [['edit', 'a', '--focus', '1.2,0'], /--focus takes two numbers from 0 to 1 .* not "1.2,0"/],
  [['edit', 'a', '--label', 'album'], /--label takes KEY=VALUE, such as album=42, not "album"/],
  [['edit', 'a', '--unlabel', 'A'], /--unlabel takes a key of 1 to 40 lower-case letters.* not "A"/],
  [['ls', '--label', '=x'], /--label takes a key/],
  [['upload', '.', '--label', 'Album=42'], /--label takes a key of 1 to 40 lower-case letters/],
  [['upload', '.', '--label', `note=${'x'.repeat(201)}`], /--label takes values of up to 200 characters/],
  [['edit', 'a', '--label', 'note=a\tb'], /--label takes values .* without control characters/],
  [
    ['upload', '.', ...Array.from({ length: 17 }, (_, n) => `--label=key${n}=x`)],
    /--label takes up to 16 labels, not 17/,
  ],
  [['edit', 'a', '--title', 'x'], /there is no option --title/],
  [['rm', 'a', 'ftp://h.example/media/x'], /neither the ID nor the URL/],
  [['upload'], /upload takes files and directories/],
  [['upload', '--fast', 'x'], /--fast[\s\S]*mediabucket upload --help/],
  [['whoami', 'really'], /mediabucket whoami --help/],
]

test('invalid arguments exit with 2', async () => {
  for (const [args, message] of invalid)
    expect(await run(...args), args.join(' ')).toMatchObject({
      ...{ code: 2, stdout: '' },
      stderr: expect.stringMatching(message),
    })
})

test.each<[string, { url?: string; token?: string }, string[], number, RegExp]>([
  [
    'no token',
    { token: '' },
    ['ls'],
    2,
    /MEDIABUCKET_TOKEN is not set\. Set it, or sign in with mediabucket login\. To create a token, .*token create/,
  ],
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
  const message = `mediabucket: no connection to ${other.url} (ECONNREFUSED). Check the URL.\n`
  // Each repeats its request for seconds.
  const [closed, unknown] = await Promise.all([
    run('get', url),
    run('get', 'http://no-such-host.invalid/x.png'),
  ])
  expect(closed).toMatchObject({ code: 1, stdout: '', stderr: message })
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

test('texts of a hostile service print no control character and no line of their own', async () => {
  // A title and a colour, also as C1 controls, a bidi override, and line breaks.
  const evil = 'a\x1b]0;t\x07\x1b[31m\x9b31m\u202e\u2028\r\nforged'
  const file = { size: 1, content_type: evil, filename: evil, sha256: evil, width: null, height: null }
  await using hostile = await startForeign(({ method, path, body }, response) => {
    const base = `http://${response.req.headers.host}`
    const id = '0'.repeat(26)
    const url = `${base}/media/${id}#${evil}`
    const texts = { alt_text: evil, caption: evil, thumbhash: null, created_at: evil, url }
    const item = {
      ...file,
      ...texts,
      id,
      deleted_at: evil,
      expires_at: evil,
      variants: { thumb: url, medium: url },
    }
    const page = foreignPage([url], 1, { base, path: `/api/media`, wrapped: false, linkPages: false })
    if (path.startsWith('/api/token')) {
      const times = {
        created_at: evil,
        expires_at: evil,
        note: evil,
        limits: null,
        uploaded: null,
        left: null,
      }
      return sendJson(response, { id: evil, name: evil, bucket: evil, scopes: [evil], ...times })
    }
    if (path.startsWith('/api/links'))
      return sendJson(response, { links: [{ id, url }], missing: [], expires_at: evil })
    if (/^\/api\/(items|trash)\b/.test(path) && method === 'GET')
      return sendJson(response, { data: [item], next_cursor: null })
    if (path.startsWith(`/api/media/${id}`)) return sendJson(response, item)
    if (path === '/api/media' && method === 'POST' && body !== '') return sendJson(response, item, 201)
    if (path.startsWith('/api/media') && method === 'GET') return sendJson(response, page)
    const problem = { type: evil, title: evil, status: 400, detail: evil, instance: evil, code: evil }
    sendJson(response, problem, 400, { 'content-type': 'application/problem+json' })
  })
  const commands = [
    ['whoami'],
    ['whoami', '--json'],
    ['ls'],
    ['ls', '-l'],
    ['ls', '--json'],
    ['ls', '--newest', '--json'],
    ['trash', 'list'],
    ['trash', 'list', '--json'],
    ['trash', 'restore', '0'.repeat(26)],
    ['link', '0'.repeat(26)],
    ['rm', '0'.repeat(26)],
    ['get', '0'.repeat(26)],
    ['upload', 'package.json'],
  ]
  const results = await Promise.all(
    commands.map((args) => runClient({ ...server, url: hostile.url }, ...args)),
  )
  const shown = results.map(
    ({ stdout, stderr }, index) => `${commands[index]?.join(' ')}: ${stdout}${stderr}`,
  )
  expect(shown.filter((text) => !text.includes('forged'))).toEqual([])
  const unsafe = /[^\P{Cc}\n\t]|[\p{Zl}\p{Zp}\p{Bidi_Control}]|^forged/mu
  expect(shown.filter((text) => unsafe.test(text)).map((text) => text.split(':', 1).join())).toEqual([])
})
