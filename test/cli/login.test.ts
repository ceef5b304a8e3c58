import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { basics, bin, type SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { startOnTerminal } from '../harness/terminal.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'
import type { CommandResult } from './client-run.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/** Runs commands with their own configuration directory and no other settings. */
async function scene() {
  const directory = await temporaryDirectory()
  const env = { ...basics, XDG_CONFIG_HOME: directory.path, XDG_STATE_HOME: directory.path }
  async function runWith(input: string, ...args: string[]): Promise<CommandResult> {
    const child = execFile(process.execPath, [bin, ...args], { env })
    // A command that reads nothing may have ended.
    child.stdin?.on('error', () => undefined).end(input)
    let [stdout, stderr] = ['', '']
    child.stdout?.on('data', (chunk) => (stdout += chunk))
    child.stderr?.on('data', (chunk) => (stderr += chunk))
    const [code] = await once(child, 'close')
    return { code, stdout, stderr }
  }
  return {
    env,
    path: directory.path,
    file: join(directory.path, 'mediabucket/profiles.json'),
    runWith,
    run: (...args: string[]) => runWith('', ...args),
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
}

test('login on a terminal asks for the URL and the token, which is not shown, and stores them for the user only', async () => {
  await using at = await scene()
  const child = startOnTerminal([process.execPath, bin, 'login'], at.env)
  let shown = ''
  child.stdout.on('data', (chunk) => (shown += chunk))
  await until('the first question', () => shown.includes('URL of the service [http://127.0.0.1:8080]: '))
  child.stdin.write(`${server.url}\r`)
  await until('the second question', () => shown.includes('Token (it is not shown):'))
  child.stdin.write(`${server.token}\r`)
  const [code] = await once(child, 'close')
  expect([code, shown]).toEqual([0, expect.stringContaining(`Signed in to the bucket "${server.bucket}"`)])
  expect(shown).not.toContain(server.token.slice(5))
  expect(JSON.parse(await readFile(at.file, 'utf8'))).toEqual({
    default: { url: server.url, token: server.token },
  })
  expect((await stat(at.file)).mode & 0o777).toBe(0o600)
})

test('login reads the token from standard input or a file; commands use the profiles until logout', async () => {
  await using at = await scene()
  const tokenFile = join(at.path, 'token')
  await writeFile(tokenFile, `${server.token}\n`)
  const first = await at.runWith(`${server.token}\n`, 'login', '--url', server.url)
  expect([first.code, first.stdout]).toEqual([0, ''])
  expect(first.stderr).toContain(`Stored as the profile "default" in ${at.file}.\n`)
  expect(
    (await at.run('login', '--profile', 'work', '--url', server.url, '--token-file', tokenFile)).code,
  ).toBe(0)
  for (const args of [[], ['--profile', 'work'], ['--url', server.url, '--token-file', tokenFile]]) {
    const shown = await at.run('whoami', ...args)
    expect(shown).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^bucket +${server.bucket}$`, 'm')),
    })
  }
  const refused = await at.run('whoami', '--url', 'http://127.0.0.1:1')
  expect([refused.code, refused.stderr]).toEqual([
    2,
    `mediabucket: the profile "default" is for ${server.url}, not for http://127.0.0.1:1, and MEDIABUCKET_TOKEN is not set. Set it, or sign in with mediabucket login --profile NAME --url http://127.0.0.1:1, and use --profile NAME. To create a token, run where the service runs: mediabucket token create --bucket NAME\n`,
  ])
  expect(await at.run('logout')).toMatchObject({
    code: 0,
    stderr: 'Removed the profile "default". Its token is still valid.\n',
  })
  expect((await at.run('whoami')).code).toBe(2)
  expect((await at.run('whoami', '--profile', 'work')).code).toBe(0)
  expect(await at.run('whoami', '--profile', 'default')).toMatchObject({
    code: 4,
    stderr:
      'mediabucket: there is no profile "default". There are: work. To create it: mediabucket login --profile default\n',
  })
})

test('login stores nothing that it could not check, and names the reason', async () => {
  await using at = await scene()
  const login = (input: string, url: string) => at.runWith(input, 'login', '--url', url)
  expect(await login('mbkt_nope', server.url)).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/rejects the token: /),
  })
  expect(await login('', server.url)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/the token is empty/),
  })
  expect(await login('x', '127.0.0.1')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^mediabucket: the URL \("127.0.0.1"\) is invalid/),
  })
  expect(await login('x', `${server.url}/docs`)).toMatchObject({ code: 4 })
  await expect(stat(at.file)).rejects.toThrow('ENOENT')
})

test('Ctrl-D instead of an answer ends login with one line, and stores nothing', async () => {
  await using at = await scene()
  for (const args of [[], ['--url', server.url]]) {
    const child = startOnTerminal([process.execPath, bin, 'login', ...args], at.env)
    let shown = ''
    child.stdout.on('data', (chunk) => (shown += chunk))
    await until('the question', () => /service \[|not shown/.test(shown))
    child.stdin.write('\x04')
    const [code] = await once(child, 'close')
    expect([code, shown]).toEqual([1, expect.stringContaining('mediabucket: the input ended')])
    expect(shown).not.toContain('AbortError')
  }
  await expect(stat(at.file)).rejects.toThrow('ENOENT')
})

test('a rejected token of a profile names the profile', async () => {
  await using at = await scene()
  await at.runWith(server.token, 'login', '--url', server.url)
  await writeFile(at.file, JSON.stringify({ default: { url: server.url, token: 'mbkt_old' } }))
  expect(await at.run('ls')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining(
      'Set the token of the profile "default" (mediabucket login) to a valid token',
    ),
  })
})

test('a self-signed certificate is named, with the setting that accepts it', async () => {
  needTools('openssl')
  await using at = await scene()
  const [cert, key] = [join(at.path, 'cert.pem'), join(at.path, 'key.pem')]
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  const name = ['-days', '2', '-subj', '/CN=x', '-addext', 'subjectAltName=IP:127.0.0.1']
  execFileSync('openssl', [...request, ...name, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const secure = createServer(
    { cert: await readFile(cert), key: await readFile(key) },
    (incoming, response) => {
      const { authorization = '' } = incoming.headers
      void fetch(new URL(incoming.url ?? '', server.url), { headers: { authorization } }).then(
        async (found) =>
          response.writeHead(found.status, { 'content-type': 'application/json' }).end(await found.text()),
      )
    },
  )
  await new Promise<void>((done) => secure.listen(0, '127.0.0.1', done))
  const url = `https://127.0.0.1:${(secure.address() as AddressInfo).port}`
  const env = { ...at.env, MEDIABUCKET_URL: url, MEDIABUCKET_TOKEN: server.token }
  const run = (more: object) =>
    promisify(execFile)(process.execPath, [bin, 'whoami', '--json'], { env: { ...env, ...more } })
  await expect(run({})).rejects.toMatchObject({
    code: 1,
    stderr: `mediabucket: no connection to ${url} (DEPTH_ZERO_SELF_SIGNED_CERT). The certificate of the server is self-signed. If it is yours, set NODE_EXTRA_CA_CERTS to the file of the certificate, or of its authority, in PEM format: NODE_EXTRA_CA_CERTS=/path/to/certificate.pem mediabucket …\n`,
  })
  expect(JSON.parse((await run({ NODE_EXTRA_CA_CERTS: cert })).stdout).bucket).toBe(server.bucket)
  secure.closeAllConnections()
  secure.close()
})

test('in bash, the script of completion completes commands, second words, options and paths', async () => {
  await using at = await scene()
  const { stdout: script } = await at.run('completion', 'bash')
  await writeFile(join(at.path, 'completion.bash'), script)
  await writeFile(join(at.path, 'photo.png'), '')
  const complete = async (...words: string[]) => {
    const typed = ['mediabucket', ...words].map((word) => `'${word}'`).join(' ')
    const code = `source completion.bash; COMP_WORDS=(${typed}); COMP_CWORD=${words.length}; _mediabucket; echo "\${COMPREPLY[@]}"; complete -p mediabucket`
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-euc', code], { cwd: at.path })
    const [found = '', registered] = stdout.split('\n')
    expect(registered).toBe('complete -o bashdefault -o default -F _mediabucket mediabucket')
    return found.split(' ').filter((word) => word !== '')
  }
  expect(await complete('lo')).toEqual(['login', 'logout'])
  expect(await complete('t')).toEqual(['token', 'trash'])
  expect(await complete('token', '')).toEqual(['create', 'list', 'revoke', 'rotate', 'keys', 'restore'])
  expect(await complete('trash', 'list', '--j')).toEqual(['--json'])
  expect(await complete('get', '--')).toEqual(
    expect.arrayContaining(['--all', '--directory', '--exclude', '--help', '--output', '--profile', '--url']),
  )
  expect(await complete('upload', '-')).toEqual(expect.arrayContaining(['--dry-run', '--expires', '-0']))
  // Paths are completed by readline where the function returns nothing.
  expect(await complete('upload', 'ph')).toEqual([])
  expect((await at.run('completion', 'tcsh')).stderr).toBe(
    'mediabucket: completion takes bash, zsh or fish\n',
  )
})
