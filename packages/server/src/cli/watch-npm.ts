import { readFileSync } from 'node:fs'

// npm and npx run a command as `sh -c COMMAND` and send SIGTERM to that shell alone (npm 10 and 11). dash then ends
// without the command, which would go on without a parent. Other shells replace themselves with the command.

/** Milliseconds between two looks at the processes above. */
const interval = 500

/** Calls `onEnd` once when the npm or npx that runs this process, or the shell between them, has ended. */
export function watchNpm(onEnd: () => void): void {
  // Only Linux has /proc; the shell of macOS replaces itself, so that npm sends signals to the service.
  if (process.platform !== 'linux') return
  const parent = process.ppid
  const grandparent = runsInForeground(parent) ? parentOf(parent) : null
  if (!isNpm(grandparent ?? parent)) return
  const watch = setInterval(() => {
    if (process.ppid === parent && (grandparent === null || parentOf(parent) === grandparent)) return
    clearInterval(watch)
    onEnd()
  }, interval)
  watch.unref()
}

/** npm shows its command line as its title. */
const isNpm = (pid: number): boolean => /^npm( |$)/.test(argumentsOf(pid)[0] ?? '')

/** Whether a process is `sh -c COMMAND` with its command in the foreground; one in the background outlives its shell. */
function runsInForeground(pid: number): boolean {
  const [, option, command = ''] = argumentsOf(pid)
  return option === '-c' && !/(?<![&>])&(?![&>])|\b(nohup|setsid)\b/.test(command)
}

const argumentsOf = (pid: number): string[] => read(`/proc/${pid}/cmdline`).split('\0')

/** The name of the program is in parentheses and may hold spaces and parentheses. */
const parentOf = (pid: number): number => Number(/.*\) \S (\d+)/s.exec(read(`/proc/${pid}/stat`))?.[1])

/** Empty once the process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
