import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '../architecture/sources.ts'
import { blocksOf } from '../docs/blocks.ts'
import { startPostgres, stopPostgres } from '../harness/postgres.ts'
import { canMount } from '../harness/small-disk.ts'

const run = promisify(execFile)

/** Programs of a machine with systemd, which runs one unit. */
const programs: Readonly<Record<string, string>> = {
  sudo: `[ "$1" != -u ] || { user=$2; shift 2; exec runuser -u "$user" -- "$@"; }
exec env "$@"`,
  // It runs the unit as its user, with its environment, in the root directory.
  systemctl: `unit=/etc/systemd/system/mediabucket.service
[ "$1" != daemon-reload ] || exit 0
if [ "$1" = stop ]; then
  kill "$(cat $STAGE/pid)"
  while kill -0 "$(cat $STAGE/pid)" 2>$STAGE/end; do sleep 0.05; done
  exit 0
fi
install -d -m 700 -o mediabucket -g mediabucket /var/lib/mediabucket
: > $STAGE/journal
cd /
set -- $(sed -n 's/^ExecStart=//p' $unit)
runuser -u mediabucket -- env -i HOME=/var/lib/mediabucket "$(sed -n 's/^Environment=//p' $unit)" $(cat /etc/mediabucket.env) \\
  sh -c 'echo $$ > "$0"; exec "$@"' $STAGE/pid "$@" >> $STAGE/journal 2>&1 < /dev/null &
until grep -q '"msg":"listening"' $STAGE/journal; do
  kill -0 $! || { cat $STAGE/journal; exit 1; }
  sleep 0.05
done`,
  journalctl: 'exec cat $STAGE/journal',
}

/**
 * Directories of a machine, which the lines change, in a mount namespace of their own. The repository may be in a directory that only its
 * owner can enter, so its entries are mounted one by one.
 */
const machine = `set -e
cp -a /etc $STAGE/etc
mkdir $STAGE/repository
mount --bind ${root} $STAGE/repository
mount --bind $STAGE/etc /etc
for directory in /opt /var/lib /mnt /run /usr/local/bin; do mount -t tmpfs tmpfs $directory; done
mkdir -p /opt/mediabucket /run/postgresql /etc/systemd/system
for entry in $STAGE/repository/*; do
  place=/opt/mediabucket/$(basename "$entry")
  if [ -d "$entry" ]; then mkdir "$place"; else : > "$place"; fi
  mount --bind "$entry" "$place"
done
mount --bind $STAGE/postgres /run/postgresql
`

/** The command of the crontab in docs/operations.md, which cron runs with few variables. */
const nightlyJob = (): string | undefined =>
  blocksOf('docs/operations.md').flatMap(({ code }) => /^[\d*]+ .* \* (\/.+)/.exec(code)?.[1] ?? [])[0]

/** A request with the token of the first start, to the service that runs now. */
const request = (path: string, ...args: string[]) =>
  `curl -sSf -H "Authorization: Bearer $(cat $STAGE/token)" ${args.join(' ')} "http://127.0.0.1:$(sed -n 's/.*"port":\\([0-9]*\\).*/\\1/p' $STAGE/journal)${path}"`

test.skipIf(process.env['CI'] === undefined && !(await canMount()))(
  'the lines of docs/operations/systemd.md install a service, back it up, restore it and move it to PostgreSQL, as a user who is not root',
  { timeout: 300_000 },
  async () => {
    const stage = await mkdtemp(join(tmpdir(), 'mediabucket-machine-'))
    try {
      const [bin, postgres] = [join(stage, 'bin'), join(stage, 'postgres')]
      for (const directory of [bin, postgres]) await mkdir(directory)
      await run('chmod', ['755', stage])
      for (const [name, code] of Object.entries(programs))
        await writeFile(join(bin, name), `#!/bin/sh\n${code}\n`, { mode: 0o755 })
      const cache = join(stage, 'cache')
      await mkdir(cache)
      await run('chmod', ['777', cache])
      await writeFile(join(stage, 'pid'), '', { mode: 0o666 })
      await run('chmod', ['666', join(stage, 'pid')])
      // On a socket only, so the port is not taken from others.
      await startPostgres(postgres, { port: 5432, listen_addresses: '' })
      const [install = [], backup = [], serve = [], move = [], bringBack = []] = blocksOf(
        'docs/operations/systemd.md',
      ).map(({ code }) => code.trim().split('\n'))
      const script = [
        machine,
        'set -x',
        ...install.map((line) =>
          line.includes('git clone') ? 'cd /opt/mediabucket; echo MEDIABUCKET_PORT=0 > $STAGE/port' : line,
        ),
      ]
      // A free port, as the only line that a reader does not have.
      const enabling = script.findIndex((line) => line.includes('enable --now'))
      script.splice(enabling, 0, 'cat $STAGE/port >> /etc/mediabucket.env')
      script.push(
        'journalctl | grep -o "mbkt_[a-zA-Z0-9_]*" | head -1 > $STAGE/token',
        request('/api/media', '--data-binary', '@README.md'),
        // As an operator does it, from a directory that the user of the service cannot enter.
        'mkdir -m 700 /mnt/private; cd /mnt/private',
        ...backup,
        `env -i HOME=/root PATH=/usr/bin:/bin sh -c '${nightlyJob()}'`,
        'find /mnt/backups /var/lib/mediabucket-restored -printf "%u\\n" | sort -u > $STAGE/owners',
        ...serve,
        `${request('/api/media')} > $STAGE/restored`,
        ...move,
        `${request('/api/media')} > $STAGE/moved`,
        'grep -o "The catalog is .*" $STAGE/journal > $STAGE/catalog',
        ...bringBack,
        'systemctl stop mediabucket',
      )
      const file = join(stage, 'script.sh')
      await writeFile(file, `${script.join('\n')}\n`)
      const env = {
        NODE_COMPILE_CACHE: cache,
        PATH: `${bin}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
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
      expect(await text('owners')).toBe('mediabucket')
      expect(JSON.parse(await text('restored'))).toMatchObject({ total: 1 })
      expect(JSON.parse(await text('moved'))).toMatchObject({ total: 1 })
      expect(await text('catalog')).toBe(
        'The catalog is postgres://mediabucket@%2Fvar%2Frun%2Fpostgresql/mediabucket.',
      )
      expect(stdout.match(/No faults were found/g)).toHaveLength(4)
      expect(stderr).not.toMatch(/\.[jt]s:\d/)
    } finally {
      await stopPostgres(join(stage, 'postgres'))
      await rm(stage, { recursive: true, force: true })
    }
  },
)
