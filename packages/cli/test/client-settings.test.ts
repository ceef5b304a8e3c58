import { chmod, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { temporaryDirectory } from '../../../test/harness/directory.ts'
import {
  readClientSettings,
  readProfiles,
  stateDirectory,
  takeConnectionOptions,
  writeProfiles,
} from '../src/client-settings.ts'

const profiles = new Map([
  ['default', { url: 'https://one.example/box/', token: 'token-1' }],
  ['work', { url: 'https://two.example', token: 'token-2' }],
])

test.each<[string, object, object, readonly [string, string]]>([
  ['the profile "default"', {}, {}, ['https://one.example/box/', 'token-1']],
  [
    'a named profile before the environment',
    { profile: 'work' },
    { MEDIABUCKET_URL: 'http://e', MEDIABUCKET_TOKEN: 'e' },
    ['https://two.example', 'token-2'],
  ],
  [
    'the environment before a profile',
    {},
    { MEDIABUCKET_URL: 'http://e', MEDIABUCKET_TOKEN: 'e' },
    ['http://e', 'e'],
  ],
  [
    'options before the environment',
    { url: 'http://o', 'token-file': 'FILE' },
    { MEDIABUCKET_URL: 'http://e', MEDIABUCKET_TOKEN: 'e' },
    ['http://o', 'token-3'],
  ],
  [
    'one option, and the environment for the other',
    { url: 'http://o' },
    { MEDIABUCKET_URL: 'http://e', MEDIABUCKET_TOKEN: 'e' },
    ['http://o', 'e'],
  ],
  [
    'the token of the environment, not for the URL of a profile',
    {},
    { MEDIABUCKET_TOKEN: 'e' },
    ['http://127.0.0.1:8080', 'e'],
  ],
  [
    'the token of a profile, for its URL',
    {},
    { MEDIABUCKET_URL: 'https://one.example/box' },
    ['https://one.example/box/', 'token-1'],
  ],
  [
    'empty variables are not set',
    {},
    { MEDIABUCKET_URL: ' ', MEDIABUCKET_TOKEN: '' },
    ['https://one.example/box/', 'token-1'],
  ],
])('precedence: %s', async (_name, options, env, [url, token]) => {
  await using directory = await temporaryDirectory()
  const base = { XDG_CONFIG_HOME: directory.path }
  writeProfiles(profiles, base)
  const file = join(directory.path, 'token')
  await writeFile(file, 'token-3\n')
  const given = 'token-file' in options ? { ...options, 'token-file': file } : options
  expect(readClientSettings(given, { ...base, ...env })).toMatchObject({ url, token })
})

test.each<[string, object, object, string]>([
  [
    'another URL',
    {},
    { MEDIABUCKET_URL: 'https://one.example' },
    'the profile "default" is for https://one.example/box/, not for https://one.example, and MEDIABUCKET_TOKEN is not set. Set it, or sign in with mediabucket login --profile NAME --url https://one.example, and use --profile NAME.',
  ],
  [
    'another --url with a password, which is not shown',
    { url: 'http://u:secret@o' },
    {},
    'the profile "default" is for https://one.example/box/, not for URL, and',
  ],
  [
    'the URL of another profile',
    { url: 'https://two.example/' },
    {},
    'MEDIABUCKET_TOKEN is not set. The profile "work" is for this URL: use --profile work.',
  ],
])(
  'no token of a profile is sent to %s, and the message names the profile',
  async (_name, options, env, message) => {
    await using directory = await temporaryDirectory()
    const base = { XDG_CONFIG_HOME: directory.path }
    writeProfiles(profiles, base)
    expect(() => readClientSettings(options, { ...base, ...env })).toThrow(message)
  },
)

test('profiles are readable by the user only, also if the file was not, and a link to the file stays', async () => {
  await using directory = await temporaryDirectory()
  const env = { XDG_CONFIG_HOME: join(directory.path, 'config') }
  const path = writeProfiles(profiles, env)
  const modes = async () => [(await stat(path)).mode & 0o777, (await stat(join(path, '..'))).mode & 0o777]
  expect(await modes()).toEqual([0o600, 0o700])
  await chmod(path, 0o644)
  writeProfiles(profiles, env)
  expect(await modes()).toEqual([0o600, 0o700])
  expect(readProfiles(env)).toEqual(profiles)

  const target = join(directory.path, 'dotfiles.json')
  await rm(path)
  await writeFile(target, '{}')
  await symlink(target, path)
  writeProfiles(profiles, env)
  expect(JSON.parse(await readFile(target, 'utf8'))).toEqual(Object.fromEntries(profiles))
})

test('without a home directory no profile is read or stored, also not below the current directory', async () => {
  const env = { XDG_CONFIG_HOME: '' }
  for (const home of ['', '.', 'relative']) {
    vi.stubEnv('HOME', home)
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(() => writeProfiles(profiles, env)).toThrow('this user has no home directory')
    expect(readProfiles(env)).toEqual(new Map())
    expect(stateDirectory('uploads', env)).toBeNull()
  }
})

test.each(['', '[]', '{"default":{"url":1,"token":"x"}}', '{"default":'])(
  'a damaged file of profiles (%j) is explained',
  async (text) => {
    await using directory = await temporaryDirectory()
    await mkdir(join(directory.path, 'mediabucket'))
    await writeFile(join(directory.path, 'mediabucket/profiles.json'), text)
    expect(() => readClientSettings({}, { XDG_CONFIG_HOME: directory.path })).toThrow(
      'profiles.json is damaged. Remove it, and run mediabucket login again.',
    )
  },
)

test.each<[string[], object, string[]]>([
  [['a', '--url', 'u', '-o', 'f'], { url: 'u' }, ['a', '-o', 'f']],
  [['--profile=p', '--all', '--', '--url', 'x'], { profile: 'p' }, ['--all', '--', '--url', 'x']],
  [['--token-file', '/t', '--caption=--url'], { 'token-file': '/t' }, ['--caption=--url']],
])('the options of the connection are taken from %j', (args, connection, rest) => {
  expect(takeConnectionOptions(args)).toEqual({ connection, rest })
})
