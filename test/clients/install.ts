import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { oncePerRun } from '../harness/once-per-run.ts'
import { installMissing } from '../harness/tools.ts'

const directory = import.meta.dirname
const stamp = join(directory, 'node_modules/.installed')

/** Whether the programs that take long to install run too (optionalDependencies of package.json). */
export const isComplete = process.env['MEDIABUCKET_TEST_CLIENTS'] === 'all'

/** Programs of S3, frameworks and their Debian packages, besides those that every run of the tests installs. */
const programs: Readonly<Record<string, string>> = {
  '/usr/share/php/Illuminate/autoload.php': 'php-laravel-framework',
  '/usr/bin/aws': 'awscli',
  '/usr/share/rubygems-integration/all/gems/activestorage-6.1.7.10': 'ruby-activestorage ruby-aws-sdk-s3',
  puma: 'ruby-railties puma',
  restic: 'restic',
  s3cmd: 's3cmd',
  s3fs: 's3fs',
}

/** The directory of this run; it is set by the global set-up. */
const directoryVariable = 'MEDIABUCKET_TEST_CLIENTS_RUN'

/** Vitest's global set-up of test/clients. */
export default async function prepareClients(): Promise<() => Promise<void>> {
  if (isComplete) installMissing(programs)
  const run = await mkdtemp(join(tmpdir(), 'mediabucket-clients-'))
  process.env[directoryVariable] = run
  return () => rm(run, { recursive: true, force: true })
}

/**
 * Installs the programs of others, in this directory, if package-lock.json has changed since. The first file of test/clients does it, so that
 * the tests of other directories begin in the meantime.
 */
export async function installClients(): Promise<void> {
  const run = process.env[directoryVariable]
  if (run === undefined) throw new Error(`${directoryVariable} is not set`)
  // The programs that take long are hundreds of megabytes.
  await oncePerRun(run, install, 1_800_000)
}

async function install(): Promise<string> {
  const lock = createHash('sha256')
    .update(readFileSync(join(directory, 'package-lock.json')))
    .digest('hex')
  const kinds = existsSync(stamp) ? readFileSync(stamp, 'utf8') : ''
  if (kinds === `${lock} all` || (kinds === lock && !isComplete)) return kinds
  console.error('Installing the programs that test/clients runs')
  await promisify(execFile)(
    'npm',
    [
      ...['ci', '--ignore-scripts', '--prefer-offline', '--no-audit', '--loglevel=error'],
      ...(isComplete ? [] : ['--omit=optional']),
    ],
    { cwd: directory },
  )
  const installed = isComplete ? `${lock} all` : lock
  writeFileSync(stamp, installed)
  return installed
}
