import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { needTools } from '../harness/tools.ts'
import { isComplete } from './install.ts'
import { type Door, doors, environmentOf, writeFiles } from './s3/door.ts'

const scenarios = join(import.meta.dirname, 's3')

interface Program {
  /** The scenario, which checks what the program does and exits with 0. */
  readonly file: string
  /** Programs and files of libraries that it needs besides the packages of this directory. */
  readonly needs: readonly string[]
  /** Whether every run of the tests runs it, on SQLite and the disk. */
  readonly isQuick?: true
}

const python = '/usr/lib/python3/dist-packages'

const programs: Readonly<Record<string, Program>> = {
  rclone: { file: 'rclone.sh', needs: ['rclone', 'curl', 'jq'], isQuick: true },
  restic: { file: 'restic.sh', needs: ['restic', 'jq'] },
  s3cmd: { file: 's3cmd.sh', needs: ['s3cmd', 'curl'] },
  aws: { file: 'aws.sh', needs: ['/usr/bin/aws', 'curl', 'jq'] },
  s3fs: { file: 's3fs.sh', needs: ['s3fs'] },
  boto3: { file: 'boto3.py', needs: [`${python}/boto3`], isQuick: true },
  'Active Storage': {
    file: 'active-storage.rb',
    needs: ['ruby', '/usr/share/rubygems-integration/all/gems/activestorage-6.1.7.10'],
  },
  '@aws-sdk': { file: 'sdk.js', needs: [] },
  minio: { file: 'minio.js', needs: [] },
  aws4fetch: { file: 'aws4fetch.js', needs: [] },
  s3mini: { file: 's3mini.js', needs: [] },
  'files-sdk': { file: 'files-sdk.js', needs: [] },
  flystorage: { file: 'flystorage.js', needs: [] },
  flydrive: { file: 'flydrive.js', needs: [] },
  'requests of Laravel, WordPress, Nextcloud and Django': { file: 'replayed.js', needs: [] },
  unstorage: { file: 'unstorage.js', needs: [] },
}

const interpreters: Readonly<Record<string, readonly string[]>> = {
  sh: ['sh', '-eu'],
  // A scenario does not stand in the way of the package with its name.
  py: ['/usr/bin/python3', '-P'],
  rb: ['ruby'],
  js: [process.execPath],
}

test('every scenario is of a program', () => {
  const helpers = ['expect.sh', 'files.js', 'door.ts']
  const files = Object.values(programs).map(({ file }) => file)
  expect(readdirSync(scenarios).toSorted()).toEqual([...files, ...helpers].toSorted())
})

const chosen = Object.entries(programs).filter(([, { isQuick }]) => isComplete || isQuick)

describe.each(isComplete ? doors : doors.slice(0, 1))('programs of S3 on %s', (_, open) => {
  let door: Door
  beforeAll(async () => {
    door = await open()
  })
  afterAll(() => door[Symbol.asyncDispose]())

  // On a busy machine: the scenario of aws starts Python for each of its commands.
  test.each(chosen)('%s', { timeout: 600_000 }, async (_, { file, needs }) => {
    needTools(...needs)
    await using directory = await temporaryDirectory()
    await writeFiles(directory.path)
    const [command = '', ...options] = interpreters[file.slice(file.lastIndexOf('.') + 1)] ?? []
    const env = {
      PATH: `/usr/bin:${process.env['PATH']}`,
      HOME: directory.path,
      LANG: 'C.UTF-8',
      SCENARIOS: scenarios,
      ...(await environmentOf(door)),
    }
    // Its last words say what failed.
    const output = await promisify(execFile)(command, [...options, join(scenarios, file)], {
      cwd: directory.path,
      env,
    }).then(
      () => '',
      (error: { stdout: string; stderr: string }) => `${error.stdout}${error.stderr}`.slice(-3_000),
    )
    expect(output).toBe('')
  })
})
