import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
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

/** Vitest's global set-up of test/clients: installs the programs of others, in this directory, if package-lock.json has changed since. */
export default async function installClients(): Promise<void> {
  if (isComplete) installMissing(programs)
  const lock = createHash('sha256')
    .update(readFileSync(join(directory, 'package-lock.json')))
    .digest('hex')
  const kinds = existsSync(stamp) ? readFileSync(stamp, 'utf8') : ''
  if (kinds === `${lock} all` || (kinds === lock && !isComplete)) return
  console.error('Installing the programs that test/clients runs')
  await promisify(execFile)(
    'npm',
    [
      ...['ci', '--ignore-scripts', '--prefer-offline', '--no-audit', '--loglevel=error'],
      ...(isComplete ? [] : ['--omit=optional']),
    ],
    { cwd: directory },
  )
  writeFileSync(stamp, isComplete ? `${lock} all` : lock)
}
