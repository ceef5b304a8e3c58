import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { blocksOf } from '../docs/blocks.ts'
import { startPostgres, stopPostgres } from './postgres.ts'

const run = promisify(execFile)

/** Programs of a machine with systemd, which runs one unit. */
const programs: Readonly<Record<string, string>> = {
  sudo: `[ "$1" != -u ] || { user=$2; shift 2; exec runuser -u "$user" -- "$@"; }
exec env "$@"`,
  // It runs the unit as its user, with the PATH of systemd, in the root directory, on a free port.
  systemctl: `unit=/etc/systemd/system/mediabucket.service
[ -f $unit ] || unit=/lib/systemd/system/mediabucket.service
running() { [ -s $STAGE/pid ] && kill -0 "$(cat $STAGE/pid)" 2>$STAGE/end; }
case $* in
  "enable --quiet "* | daemon-reload | "disable "*) exit 0 ;;
  reload*) kill -HUP "$(cat $STAGE/pid)"; exit ;;
  stop* | restart*)
    ! running || kill "$(cat $STAGE/pid)"
    while running; do sleep 0.05; done
    case $1 in stop) exit 0 ;; esac ;;
esac
install -d -m 700 -o mediabucket -g mediabucket /var/lib/mediabucket
: > $STAGE/journal
cd /
set -- $(sed -n 's/^ExecStart=//p' $unit)
runuser -u mediabucket -- env -i HOME=/var/lib/mediabucket PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin \\
  MEDIABUCKET_PORT=0 sh -c 'echo $$ > "$0"; exec "$@"' $STAGE/pid "$@" >> $STAGE/journal 2>&1 < /dev/null &
until grep -q '"msg":"listening"' $STAGE/journal; do
  kill -0 $! || { cat $STAGE/journal; exit 1; }
  sleep 0.05
done`,
  journalctl: 'exec cat $STAGE/journal',
  // Of a file, without other packages.
  apt: 'shift; exec dpkg --install --force-depends "$@"',
}

/** Directories of a machine, which the lines change, in a mount namespace of their own. */
const mounts = `set -e
cp -a /etc $STAGE/etc
mount --bind $STAGE/etc /etc
cp -a /var/lib/dpkg $STAGE/dpkg
for directory in /opt /var/lib /mnt /run; do mount -t tmpfs tmpfs $directory; done
# Programs and pages of packages.
mkdir $STAGE/usr $STAGE/usr-work
mount -t overlay overlay -o lowerdir=/usr,upperdir=$STAGE/usr,workdir=$STAGE/usr-work /usr
mount -t tmpfs tmpfs /usr/local/bin
cp -a $STAGE/dpkg /var/lib/dpkg
mkdir -p /run/postgresql /run/systemd/system /etc/systemd/system /var/lib/systemd
mount --bind $STAGE/postgres /run/postgresql
`

/** The lines of root's crontab on a page, as cron runs their commands, which have few variables. */
function jobsOf(page: string): string[] {
  const crontab = blocksOf(page).find(({ reason }) => reason?.includes('crontab'))?.code ?? ''
  const path = /^PATH=.*$/m.exec(crontab)?.[0] ?? 'PATH=/usr/bin:/bin'
  return [...crontab.matchAll(/^[\d*]+ .* [\d*] (mediabucket .+)$/gm)].map(
    ([, command]) => `env -i HOME=/root STAGE=$STAGE "${path}" sh -c '${command}'`,
  )
}

/** A request with the token of the first start, to the service that runs now. */
const request = (path: string, ...args: string[]) =>
  `curl -sSf -H "Authorization: Bearer $(cat $STAGE/token)" ${args.join(' ')} "http://127.0.0.1:$(sed -n 's/.*"port":\\([0-9]*\\).*/\\1/p' $STAGE/journal)${path}"`

/** The blocks of a page that are lines of a shell on the machine of the service. */
const linesOf = (page: string): string[][] =>
  blocksOf(page)
    .filter(({ language, reason }) => language === 'sh' && reason === null)
    .map(({ code }) => code.trim().split('\n'))

/** How an installation is upgraded: lines that make the newer files in the current directory, and the reason that the page gives for its block. */
interface Upgrade {
  readonly files: readonly string[]
  readonly reason: string
}

function upgradeLines({ files, reason }: Upgrade): string[] {
  const block = blocksOf('docs/operations/upgrade.md').find((one) => one.reason === reason)
  if (block === undefined)
    throw new Error(`no block of docs/operations/upgrade.md has the reason "${reason}"`)
  return [
    'mkdir $STAGE/newer; cd $STAGE/newer',
    ...files,
    ...block.code.trim().split('\n'),
    'cd /mnt/private',
  ]
}

/** What the service and the commands did on the machine. */
export interface MachineResult {
  readonly stdout: string
  readonly stderr: string
  /** The text of a file that the lines wrote. */
  readonly text: (name: string) => Promise<string>
}

/**
 * Runs the lines of the pages for operators on a machine of its own, with root's rights: they install the service, back it up, restore it,
 * move it to PostgreSQL and turn the audit log on. `install` are the lines that an installation has beside these; `hasUnit` is whether it
 * starts the service itself. Needs mounts (small-disk.ts).
 */
export async function runOperatorPages(
  {
    install,
    hasUnit,
    upgrade,
  }: { readonly install: readonly string[]; readonly hasUnit: boolean; readonly upgrade?: Upgrade },
  check: (result: MachineResult) => Promise<void>,
): Promise<void> {
  const stage = await mkdtemp(join(tmpdir(), 'mediabucket-machine-'))
  try {
    const [bin, postgres, cache] = ['bin', 'postgres', 'cache'].map((name) => join(stage, name))
    if (bin === undefined || postgres === undefined || cache === undefined) throw new Error('three paths')
    for (const directory of [bin, postgres, cache]) await mkdir(directory)
    await run('chmod', ['755', stage])
    await run('chmod', ['777', cache])
    for (const [name, code] of Object.entries(programs))
      await writeFile(join(bin, name), `#!/bin/sh\n${code}\n`, { mode: 0o755 })
    await writeFile(join(stage, 'pid'), '')
    await run('chmod', ['666', join(stage, 'pid')])
    // On a socket only, so the port is not taken from others.
    await startPostgres(postgres, { port: 5432, listen_addresses: '' })
    const [, unit = [], backup = [], serve = [], move = [], bringBack = []] = linesOf(
      'docs/operations/systemd.md',
    )
    const [auditOn = [], ...audit] = linesOf('docs/operations/audit.md')
    const script = [
      mounts,
      'set -x',
      ...install,
      ...(hasUnit ? [] : unit),
      'journalctl | grep -o "mbkt_[a-zA-Z0-9_]*" | head -1 > $STAGE/token',
      'echo picture > $STAGE/file',
      request('/api/media', '--data-binary', '@$STAGE/file'),
      // As an operator does it, from a directory that the user of the service cannot enter.
      'mkdir -m 700 /mnt/private; cd /mnt/private',
      ...backup,
      ...linesOf('docs/operations/backups.md').flat(),
      ...jobsOf('docs/operations/backups.md'),
      ...linesOf('docs/operations.md')
        .flat()
        .filter((line) => /^sudo mediabucket (fsck|vacuum)/.test(line)),
      ...(upgrade === undefined ? [] : upgradeLines(upgrade)),
      'find /mnt/backups /var/lib/mediabucket-restored -printf "%u\\n" | sort -u > $STAGE/owners',
      ...serve,
      `${request('/api/media')} > $STAGE/restored`,
      ...auditOn,
      'sudo mediabucket token create --bucket default --name spare',
      'sudo mediabucket token revoke "$(sudo mediabucket token list | grep spare | grep -o "tok_[a-z0-9]*")"',
      ...audit
        .flat()
        .filter((line) => line.startsWith('sudo ') && !line.includes('--item'))
        .map((line) => (line.includes('>') ? line : `${line} >> $STAGE/audit`)),
      ...move,
      `${request('/api/media')} > $STAGE/moved`,
      'grep -o \'"catalog":"[^"]*\' $STAGE/journal > $STAGE/catalog',
      ...bringBack,
      'systemctl stop mediabucket',
    ]
    const file = join(stage, 'script.sh')
    await writeFile(file, `${script.join('\n')}\n`)
    const env = {
      NODE_COMPILE_CACHE: cache,
      PATH: `${bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
      STAGE: stage,
      LANG: 'C.UTF-8',
    }
    const { stdout, stderr } = await run('unshare', ['--mount', '--propagation=private', 'sh', file], {
      env,
      timeout: 280_000,
    }).catch(async (error: unknown) => {
      await run('sh', ['-c', 'kill "$(cat "$0")"', join(stage, 'pid')]).catch(() => undefined)
      throw error
    })
    const text = async (name: string) => (await readFile(join(stage, name), 'utf8')).trim()
    await check({ stdout, stderr, text })
  } finally {
    await stopPostgres(join(stage, 'postgres'))
    await rm(stage, { recursive: true, force: true })
  }
}

/** Expects what the pages promise. */
export async function expectOperatorPages({ stdout, stderr, text }: MachineResult): Promise<void> {
  expect(await text('owners')).toBe('mediabucket')
  expect(JSON.parse(await text('restored'))).toMatchObject({ total: 1 })
  expect(JSON.parse(await text('moved'))).toMatchObject({ total: 1 })
  expect((await text('catalog')).split('\n').at(-1)).toBe(
    '"catalog":"postgres://mediabucket@%2Fvar%2Frun%2Fpostgresql/mediabucket',
  )
  // Changes of commands too.
  expect(await text('audit')).toContain('token-revoke')
  expect(stdout.match(/No faults were found/g)?.length).toBeGreaterThan(5)
  expect(stderr).not.toMatch(/\.[jt]s:\d/)
}
