import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, sep } from 'node:path'

/** A process. A later process with the same number differs in its start where the system has /proc. */
export interface ProcessIdentity {
  readonly host: string
  readonly pid: number
  /** The boot of the system and the clock tick after it; null where there is no /proc. */
  readonly started: string | null
}

export const thisProcess = (): ProcessIdentity => ({
  host: hostname(),
  pid: process.pid,
  started: startOf(process.pid),
})

/** Whether the process is running; null if it belongs to another host, whose processes are not visible. */
export function isRunning({ host, pid, started }: ProcessIdentity): boolean | null {
  if (host !== hostname()) return null
  if (started !== null) return startOf(pid) === started
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: it belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** When this process was started, or the npx that runs it, which takes a while. Milliseconds since 1970. */
export function startTime(): number {
  const npm = npmOf(process.ppid)
  // 100 ticks are a second on every system with /proc.
  const earlier = npm === null ? Number.NaN : (Number(statOf(process.pid)[19]) - Number(statOf(npm)[19])) * 10
  // Not a number where npm has ended.
  return performance.timeOrigin - (Number.isFinite(earlier) ? earlier : 0)
}

const localPrograms = `${sep}node_modules${sep}.bin`

/**
 * How this program is called from `directory`, in a shell: by npx in a clone or a project that has installed it and below, elsewhere by
 * the path of such a program, and otherwise by its name.
 */
export function programName(program = process.argv[1] ?? '', directory = process.cwd()): string {
  const place = dirname(program)
  if (!place.endsWith(localPrograms)) return 'mediabucket'
  const project = place.slice(0, -localPrograms.length)
  return `${directory}${sep}`.startsWith(`${project}${sep}`) ? 'npx mediabucket' : shellWord(program)
}

/** A word of a command line of a POSIX shell. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** Null if the process has ended, also if its parent has not collected it (Z), and where there is no /proc. */
function startOf(pid: number): string | null {
  const fields = statOf(pid)
  const [state] = fields
  const tick = fields[19]
  if (state === undefined || tick === undefined || state === 'Z' || state === 'X') return null
  return `${read('/proc/sys/kernel/random/boot_id').trim()} ${tick}`
}

// npm and npx run a command as `sh -c COMMAND`, and send SIGTERM to that shell only (npm 10 and 11). dash then ends and leaves
// the command running. Other shells replace themselves with the command.

/** Milliseconds between two checks of the parent processes. */
const interval = 1_000

/** Calls `onEnd` once when the npm or npx that runs this process, or its shell, has ended (docs/interface.md O9). */
export function watchNpm(onEnd: () => void): void {
  // Only Linux has /proc. The shell of macOS replaces itself, so npm sends signals to the service.
  if (process.platform !== 'linux') return
  const parent = process.ppid
  const grandparent = runsInForeground(parent) ? parentOf(parent) : null
  if (npmOf(parent) === null) return
  const watch = setInterval(() => {
    if (process.ppid === parent && (grandparent === null || parentOf(parent) === grandparent)) return
    clearInterval(watch)
    onEnd()
  }, interval)
  watch.unref()
}

/** The npm or npx that runs a command whose parent this is; null if there is none. */
function npmOf(parent: number): number | null {
  const candidate = runsInForeground(parent) ? parentOf(parent) : parent
  return isNpm(candidate) ? candidate : null
}

/** npm sets its process title to its command line. */
const isNpm = (pid: number): boolean => /^npm( |$)/.test(argumentsOf(pid)[0] ?? '')

/** True for `sh -c COMMAND` with a foreground command; a background command may outlive its shell. */
function runsInForeground(pid: number): boolean {
  const [, option, command = ''] = argumentsOf(pid)
  return option === '-c' && !/(?<![&>])&(?![&>])|\b(nohup|setsid)\b/.test(command)
}

const argumentsOf = (pid: number): string[] => read(`/proc/${pid}/cmdline`).split('\0')

const parentOf = (pid: number): number => Number(statOf(pid)[1])

/** The fields of proc(5) from the state on. The program name before them is in parentheses, and may contain spaces and parentheses. */
const statOf = (pid: number): string[] =>
  /.*\) (.*)/s
    .exec(read(`/proc/${pid}/stat`))?.[1]
    ?.trim()
    .split(' ') ?? []

/** Empty if the process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
