import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { expect, test } from 'vitest'
import { scopes } from '../../packages/server/src/core/token-rules.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { runCommand, startServer } from '../harness/server.ts'
import { readPage } from '../harness/wire.ts'

const asText = { MEDIABUCKET_LOG_FORMAT: 'text' }

test('A8, A3 the first start prints a token with all scopes once, with two commands that work unchanged', async () => {
  await using directory = await temporaryDirectory()
  await using server = await startServer(asText)
  await writeFile(join(directory.path, 'README.md'), '# Hello')
  const commands = server.stdout().match(/^ +curl .*$/gm) ?? []
  expect(commands.length).toBe(2)
  const run = async (command: string) => {
    const line = command.replace(' curl ', ' curl -sS --fail-with-body ')
    return (await promisify(execFile)('sh', ['-c', line], { cwd: directory.path })).stdout
  }
  const stored = JSON.parse(await run(commands[0] ?? ''))
  expect(stored).toMatchObject({ filename: 'README.md', size: 7, content_type: 'text/markdown' })
  expect(stored.url).toMatch(/\.md$/)
  expect(JSON.parse(await run(commands[1] ?? ''))).toMatchObject({ total: 1, data: [stored.url] })
  const described = await server.request('/api/token', {
    headers: { authorization: `Bearer ${server.token}` },
  })
  expect(await described.json()).toMatchObject({ bucket: 'default', scopes })
  expect(server.stderr()).not.toContain(server.token)
  // On a terminal only the banner shows the address; the log has one line with it.
  expect(server.stderr()).not.toContain('Server listening')
})

test('G1 every start prints the URL of the gallery', async () => {
  const banner = /ready at (http\S+)\nOpen it in a browser/
  await using server = await startServer(asText)
  expect(banner.exec(server.stdout())?.[1]).toBe(server.url)
  await server.stop()
  await using later = await startServer(asText, server.data)
  expect(banner.exec(later.stdout())?.[1]).toBe(later.url)
})

test('A8 a later start prints no token, but the command to create one', async () => {
  await using server = await startServer(asText)
  await server.stop()
  await using later = await startServer(asText, server.data)
  expect(later.stdout()).not.toContain('mbkt_')
  expect(later.stdout()).toContain(`MEDIABUCKET_DATA=${server.data} mediabucket token create`)
  const [, line] = /(token create .*)$/m.exec(later.stdout()) ?? []
  const { stdout } = await later.command(...(line ?? '').split(' '))
  const headers = { authorization: `Bearer ${stdout.trim()}` }
  expect((await readPage(await later.request('/api/media', { headers }))).total).toBe(0)
})

test('A8 a token created before the first start is valid, and no other is created', async () => {
  await using directory = await temporaryDirectory()
  const data = join(directory.path, 'not', 'yet')
  const { stdout } = await runCommand(['token', 'create', '--bucket', 'mine'], { MEDIABUCKET_DATA: data })
  await using server = await startServer({}, data)
  expect(server.token).toBe('')
  const headers = { authorization: `Bearer ${stdout.trim()}` }
  expect((await server.request('/api/media', { headers })).status).toBe(200)
})

test('O6 a start refuses a Node.js whose HTTP parser cannot be paused, with one line', async () => {
  await using directory = await temporaryDirectory()
  const script =
    "import stream from 'node:stream'; Object.defineProperty(stream.Duplex.prototype, 'parser', { get: () => null, set: () => undefined })"
  const started = runCommand(['serve'], {
    MEDIABUCKET_DATA: directory.path,
    MEDIABUCKET_PORT: '0',
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}`,
  })
  await expect(started).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /^mediabucket: Node\.js \S+ has an HTTP parser that cannot be paused\. [^\n]*\n$/,
    ),
  })
})

const lines = (text: string) => text.trimEnd().split('\n')
const StartLine = Type.Object({ level: Type.Integer(), time: Type.Integer(), msg: Type.String() })

test.each(['auto', 'json'])(
  'O10, A8 with a log in JSON (%s) all output is JSON from the first line; only standard output has the token',
  async (format) => {
    // One setting that is not known, and one warning of Node.js.
    const settings = { MEDIABUCKET_LOG_FORMAT: format, MEDIABUCKET_OWN: 'x' }
    await using server = await startServer(settings)
    process.kill(server.process.pid ?? 0, 'SIGHUP')
    await server.stop()
    await using later = await startServer(settings, server.data)
    await later.stop()
    for (const text of [server.stdout(), server.stderr(), later.stdout(), later.stderr()])
      for (const line of lines(text)) expect(Value.Check(StartLine, JSON.parse(line)), line).toBe(true)
    const [first] = lines(server.stdout()).map((line) => JSON.parse(line))
    expect(lines(server.stdout())).toHaveLength(1)
    expect(first).toMatchObject({ url: server.url, bucket: 'default', token: server.token })
    expect(server.stderr() + later.stdout() + later.stderr()).not.toContain('mbkt_')
    expect(later.stdout()).toContain('token create --bucket default')
  },
)

test.each([
  { MEDIABUCKET_LOG_FORMAT: 'json', MEDIABUCKET_PORT: 'x' },
  { JOURNAL_STREAM: '8:1', MEDIABUCKET_PORT: 'x', MEDIABUCKET_HOST: '' },
  { MEDIABUCKET_LOG_FORMAT: 'json', MEDIABUCKET_HOST: '192.0.2.1' },
])('O10 a failed start is a line of JSON where a program reads it: %o', async (settings) => {
  await using directory = await temporaryDirectory()
  const started = runCommand(['serve'], { MEDIABUCKET_DATA: directory.path, ...settings })
  const { stdout, stderr } = await started.catch((error: { stdout: string; stderr: string }) => error)
  expect(stdout).toBe('')
  const line = lines(stderr)
    .map((text) => JSON.parse(text))
    .at(-1)
  expect(line).toMatchObject({ level: 60, msg: expect.stringContaining('the start failed: ') })
  expect(line.msg).toContain('MEDIABUCKET_')
})
