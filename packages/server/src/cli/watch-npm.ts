import { readFileSync } from 'node:fs'

// npm and npx run a command as `sh -c COMMAND`, and send SIGTERM to that shell only (npm 10 and 11). dash then ends and leaves
// the command running. Other shells replace themselves with the command.

/** Milliseconds between two checks of the parent processes. */
const interval = 500

/** Calls `onEnd` once when the npm or npx that runs this process, or its shell, has ended (docs/interface.md O9). */
export function watchNpm(onEnd: () => void): void {
  // Only Linux has /proc. The shell of macOS replaces itself, so npm sends signals to the service.
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

/** npm sets its process title to its command line. */
const isNpm = (pid: number): boolean => /^npm( |$)/.test(argumentsOf(pid)[0] ?? '')

/** True for `sh -c COMMAND` with a foreground command; a background command may outlive its shell. */
function runsInForeground(pid: number): boolean {
  const [, option, command = ''] = argumentsOf(pid)
  return option === '-c' && !/(?<![&>])&(?![&>])|\b(nohup|setsid)\b/.test(command)
}

const argumentsOf = (pid: number): string[] => read(`/proc/${pid}/cmdline`).split('\0')

/** See proc(5): the program name is in parentheses, and may contain spaces and parentheses. */
const parentOf = (pid: number): number => Number(/.*\) \S (\d+)/s.exec(read(`/proc/${pid}/stat`))?.[1])

/** Empty if the process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
