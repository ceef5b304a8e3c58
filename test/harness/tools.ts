import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync, globSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

/** Programs that some tests need, or files of libraries, and their Debian packages. */
const packages: Readonly<Record<string, string>> = {
  '/usr/lib/python3/dist-packages/boto3': 'python3-boto3',
  '/usr/lib/python3/dist-packages/httpx': 'python3-httpx',
  '/usr/lib/python3/dist-packages/requests': 'python3-requests',
  '/usr/share/php/GuzzleHttp/autoload.php': 'php-guzzlehttp-guzzle php-curl',
  aria2c: 'aria2',
  caddy: 'caddy',
  'ceph-mon': 'ceph-mon',
  'ceph-osd': 'ceph-osd',
  'chromium-headless-shell': 'chromium-headless-shell',
  clamd: 'clamav-daemon',
  curl: 'curl',
  'django-admin': 'python3-django',
  'docker-compose': 'docker-compose',
  faketime: 'faketime',
  exiftool: 'libimage-exiftool-perl',
  ffmpeg: 'ffmpeg',
  'heif-enc': 'libheif-examples',
  jq: 'jq',
  logrotate: 'logrotate',
  'mkfs.exfat': 'exfatprogs',
  'mount.exfat-fuse': 'exfat-fuse',
  nginx: 'nginx-light',
  openssl: 'openssl',
  pgbouncer: 'pgbouncer',
  pdftoppm: 'poppler-utils',
  php: 'php-cli',
  postgres: 'postgresql',
  prometheus: 'prometheus',
  promtool: 'prometheus',
  python3: 'python3',
  radosgw: 'radosgw',
  'radosgw-admin': 'ceph-common',
  rclone: 'rclone',
  script: 'bsdutils',
  strace: 'strace',
  'systemd-analyze': 'systemd',
  wget: 'wget',
  wrk: 'wrk',
}

/** Directories of programs besides the PATH. */
const directories = ['/usr/sbin', ...globSync('/usr/lib/postgresql/*/bin')]

const hasTool = (name: string): boolean =>
  (isAbsolute(name) && existsSync(name)) ||
  [...(process.env['PATH'] ?? '').split(delimiter), ...directories].some((directory) => {
    try {
      accessSync(join(directory, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })

/** Throws one sentence if a program is missing. Tests call it where they would start the program. */
export function needTools(...names: readonly string[]): void {
  const missing = names.filter((name) => !hasTool(name))
  if (missing.length === 0) return
  throw new Error(
    `This needs ${missing.join(', ')}, which \`npm run test:tools\` installs (as root on Debian).`,
  )
}

const startPolicy = '/usr/sbin/policy-rc.d'

/** Seconds for which to wait until another process has released a lock of packages or of their lists. */
const lockTimeout = 300

function aptGet(...args: readonly string[]): void {
  execFileSync('apt-get', ['-o', `DPkg::Lock::Timeout=${lockTimeout}`, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
  })
}

/** apt does not wait for the lock of the lists itself. */
function updateLists(): void {
  const end = performance.now() + lockTimeout * 1_000
  for (let isUpdated = false; !isUpdated; )
    try {
      aptGet('update', '-q')
      isUpdated = true
    } catch (error) {
      const isLocked = error instanceof Error && error.message.includes('Could not get lock')
      if (!isLocked || performance.now() > end) throw error
      execFileSync('sleep', ['1'])
    }
}

/** As root on Debian, installs the missing programs of a table as `packages`. */
export function installMissing(table: Readonly<Record<string, string>>): void {
  const missing = Object.keys(table).filter((name) => !hasTool(name))
  if (missing.length === 0 || process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return
  const wanted = missing.flatMap((name) => table[name]?.split(' ') ?? [])
  console.error(`Installing programs that some tests need: ${wanted.join(' ')}`)
  // Without this file the packages of servers start them.
  const hasPolicy = existsSync(startPolicy)
  try {
    if (!hasPolicy) writeFileSync(startPolicy, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
    updateLists()
    aptGet('install', '-qy', '--no-install-recommends', ...wanted)
  } catch (error) {
    console.error('The installation failed. Tests that need these programs fail.', error)
  } finally {
    if (!hasPolicy) rmSync(startPolicy, { force: true })
  }
}

/** Installs the programs of most tests. A run of all tests does so, as Vitest's global set-up. */
export default function installTools(): void {
  installMissing(packages)
}

if (import.meta.main) installTools()
