import { expect, test, vi } from 'vitest'
import { commands as listed } from '../../packages/server/src/cli/commands.ts'
import { main } from '../../packages/server/src/cli/main.ts'
import { version } from '../../packages/server/src/core/version.ts'
import { settings } from '../../packages/server/src/service/settings.ts'
import { runCommand } from '../harness/server.ts'

const commands = Object.keys(listed)

/** Runs a command in this process; rejects as a process does that fails. */
async function run(...args: string[]) {
  const [printed, warned]: [string[], string[]] = [[], []]
  vi.spyOn(console, 'log').mockImplementation((text) => void printed.push(`${text}\n`))
  vi.spyOn(console, 'error').mockImplementation((text) => void warned.push(`${text}\n`))
  await main(args)
  vi.restoreAllMocks()
  const code = process.exitCode ?? 0
  process.exitCode = undefined
  const output = { stdout: printed.join(''), stderr: warned.join('') }
  if (code !== 0) throw Object.assign(new Error(`exit code ${code}`), { code, ...output })
  return output
}

test.each([[[]], [['help']], [['-h']]])('mediabucket %j lists every command', async (args) => {
  const { stdout, stderr } = await run(...args)
  expect(stderr).toBe('')
  for (const name of commands) expect(stdout).toContain(`  ${name} `)
})

test('mediabucket help settings describes every setting of the service', async () => {
  const { stdout, stderr } = await run('help', 'settings')
  expect(stderr).toBe('')
  const paragraphs = stdout.trimEnd().split('\n\n').slice(1)
  const described = paragraphs.map((paragraph) => paragraph.split(/\n? {4}/))
  expect(described.map(([name, ...lines]) => [name, lines.join(' ')])).toEqual(
    Object.entries(settings).map(([name, { description, defaultText }]) => [
      name,
      description + (defaultText ? ` [${defaultText}]` : ''),
    ]),
  )
  expect(Math.max(...stdout.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(100)
})

test.each([[['settings']], [['help', 'settings', '--help']], [['settings', '-h']]])(
  'mediabucket %j prints the same as help settings',
  async (args) => {
    expect(await run(...args)).toEqual(await run('help', 'settings'))
  },
)

test('mediabucket help settings NAME describes this setting', async () => {
  const { stdout } = await run('help', 'settings', 'MEDIABUCKET_PORT')
  expect((await run('help', 'settings')).stdout).toContain(`\n\n${stdout.trimEnd()}\n\n`)
  await expect(run('help', 'settings', 'MEDIABUCKET_PROT')).rejects.toMatchObject({
    code: 2,
    stderr:
      'mediabucket: there is no setting "MEDIABUCKET_PROT". Did you mean "MEDIABUCKET_PORT"? See: mediabucket help settings\n',
  })
})

test('mediabucket help settings finds a setting without its prefix, in upper and lower case', async () => {
  const described = await run('help', 'settings', 'MEDIABUCKET_PORT')
  for (const name of ['PORT', 'port', 'mediabucket_port', 'Mediabucket_Port'])
    expect(await run('help', 'settings', name)).toEqual(described)
  await expect(run('help', 'settings', 'prot')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no setting "prot". Did you mean "MEDIABUCKET_PORT"?'),
  })
  await expect(run('help', 'settings', 'dance')).rejects.toMatchObject({
    stderr: 'mediabucket: there is no setting "dance". See: mediabucket help settings\n',
  })
})

test.each(commands)('mediabucket %s --help prints its usage', async (command) => {
  const { stdout, stderr } = await run(...command.split(' '), '--help')
  expect([stdout.startsWith(`Usage: mediabucket ${command}`), stderr]).toEqual([true, ''])
})

test('mediabucket help COMMAND prints the same as COMMAND --help', async () => {
  expect(await run('help', 'upload')).toEqual(await run('upload', '--help'))
  expect(await run('help', 'token', 'create')).toEqual(await run('token', 'create', '--help'))
  expect(await run('help', 'token')).toEqual(await run('token', '--help'))
  expect(await run('--help', 'token', 'create')).toEqual(await run('token', 'create', '--help'))
})

test.each(['--version', '-V'])('mediabucket %s prints only the version', async (option) => {
  expect(await run(option)).toEqual({ stdout: `${version}\n`, stderr: '' })
})

test('a process prints help and exits with 0, or 2 for invalid arguments', async () => {
  expect(await runCommand(['--version'], {})).toEqual({ stdout: `${version}\n`, stderr: '' })
  await expect(runCommand(['dance'], {})).rejects.toMatchObject({
    code: 2,
    stdout: '',
    stderr: 'mediabucket: there is no command "dance". See: mediabucket help\n',
  })
})

test('help works with invalid settings', async () => {
  const { stdout } = await runCommand(['serve', '-h'], { MEDIABUCKET_PORT: 'x' })
  expect(stdout).toMatch(/^Usage: mediabucket serve/)
})

test('mediabucket token --help prints the usage of all token commands', async () => {
  const { stdout } = await run('token', '--help')
  for (const command of commands.filter((name) => name.startsWith('token')))
    expect(stdout).toContain(`Usage: mediabucket ${command}`)
})

test.each([
  [['dance'], /there is no command "dance". See: mediabucket help/],
  [['list'], /there is no command "list". Did you mean "ls"\? See: mediabucket help/],
  [['download', 'x'], /Did you mean "get"\?/],
  [['delete', 'x'], /Did you mean "rm"\?/],
  [['cp', 'a', 'b'], /Did you mean "upload" or "get"\?/],
  [['help', 'dance'], /there is no command "dance". See: mediabucket help/],
  [['dance', '--help'], /there is no command "dance"/],
  [['toString'], /there is no command "toString"/],
  [['token'], /"token" needs one of: create, list, revoke/],
  [['get', 'a', 'b'], /get takes one ID, URL or path, or several with -d DIR. See: mediabucket ls/],
  [['get', '--all'], /get --all takes one directory/],
  [['get', '--all', 'x', 'y'], /get --all takes one directory/],
  [['get', 'a', '-d', 'x', '-o', 'y'], /-o for one item, or a directory/],
  [['get', 'a', '--dry-run'], /need -d DIR or --all DIR/],
  [['get', 'a', '-d', 'x', '--exclude', '*'], /--exclude needs --all/],
  [['get', '--all', 'x', '--json', '-0'], /--json or -0, not both/],
  [['get', 'http://h.example/x', '-d', 'x'], /neither the ID nor the URL of an item/],
  [['upload', '-', 'x'], /upload - takes no other path/],
  [['upload', 'x', '--filename', 'y'], /--filename is the name of standard input/],
  [['serve', 'now'], /serve takes no arguments, but received: now/],
])('mediabucket %j is invalid and exits with 2', async (args, message) => {
  const failure = run(...args)
  await expect(failure).rejects.toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
  await expect(failure).rejects.toMatchObject({
    stderr: expect.stringMatching(/^mediabucket: (?![\s\S]*\.[jt]s:)/),
  })
})
