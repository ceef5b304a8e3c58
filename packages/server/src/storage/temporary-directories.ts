import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorCode } from '../core/faults.ts'

// Directories for files that programs read, and for the rows of a backup that is verified. A killed process leaves its directories, so their
// names identify the process: by a hash of the boot of the machine and the PID namespace (containers can share a directory for temporary files),
// its id and its start time.

const prefix = 'mediabucket-picture-'
const namePattern = /^mediabucket-picture-(?:(?<scope>[0-9a-f]{12})-(?<pid>\d+)-(?<startTime>\d+)-)?\w{6}$/

/** Milliseconds after which a directory of another container, or of an earlier boot, is removed. Renders take seconds. */
const foreignLifetime = 24 * 3600 * 1000

const isLinux = process.platform === 'linux'

/** The processes whose ids mean the same as here. */
function readScope(): string {
  const parts = isLinux
    ? [readFileSync('/proc/sys/kernel/random/boot_id', 'latin1'), readlinkSync('/proc/self/ns/pid')]
    : [hostname()]
  return createHash('sha256').update(parts.join()).digest('hex').slice(0, 12)
}

/** The start time of a running process, which differs from that of a later process with its id; null if it has ended. */
function startTimeOf(pid: number): string | null {
  try {
    if (!isLinux) return process.kill(pid, 0) ? '0' : null
    // The name of the program, in parentheses, can contain spaces and parentheses (proc_pid_stat(5)).
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' || state === 'X' ? null : (fields[18] ?? null)
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(errorCode(error) ?? '')) return null
    throw error
  }
}

interface Identity {
  /** Null if /proc cannot be read. Then no process can find out whether another one is running. */
  readonly scope: string | null
  /** The part of the names of directories that identifies this process. */
  readonly name: string
}

function identifySelf(): Identity {
  try {
    const [scope, startTime] = [readScope(), startTimeOf(process.pid)]
    if (startTime !== null) return { scope, name: `${scope}-${process.pid}-${startTime}-` }
  } catch {
    // As without a start time.
  }
  return { scope: null, name: '' }
}

let identity: Identity | null = null

function self(): Identity {
  identity ??= identifySelf()
  return identity
}

/** Creates a directory that only this user can read, in the directory for temporary files. Its creator removes it. */
export const createTemporaryDirectory = (): Promise<string> =>
  mkdtemp(join(tmpdir(), `${prefix}${self().name}`))

/** Removes the temporary directories of processes of this user that have ended. Returns their number. */
export async function removeLeftDirectories(now: number): Promise<number> {
  let removed = 0
  // Synchronous, as it is part of each start, and mostly finds nothing: an idle service has no threads for files.
  for (const name of readdirSync(tmpdir())) {
    const match = namePattern.exec(name)
    const path = join(tmpdir(), name)
    if (match === null || !isLeft(path, match.groups ?? {}, now)) continue
    await rm(path, { recursive: true, force: true })
    removed += 1
  }
  return removed
}

function isLeft(
  path: string,
  { scope, pid, startTime }: Readonly<Record<string, string | undefined>>,
  now: number,
): boolean {
  // Its process may have removed it in the meantime.
  const stats = lstatSync(path, { throwIfNoEntry: false })
  // Nobody else's: their processes may not be visible.
  if (!stats?.isDirectory() || stats.uid !== process.getuid?.()) return false
  if (scope !== undefined && scope === self().scope) return startTimeOf(Number(pid)) !== startTime
  return now - stats.mtimeMs > foreignLifetime
}
