import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { needTools } from './tools.ts'

/** script(1) of util-linux creates a terminal. */
const tool = 'script'

/** Starts a command on a terminal. What is written to its standard input is typed. */
export function startOnTerminal(command: readonly string[], env: NodeJS.ProcessEnv) {
  needTools(tool)
  return spawn(tool, ['-qec', quoted(command), '/dev/null'], { env: { ...env, TERM: 'xterm' } })
}

const quoted = (command: readonly string[]): string => command.map((word) => `'${word}'`).join(' ')

/** The output of a command that is interrupted by Ctrl-C at its question, and its exit code. */
export async function interruptedAt(question: string, command: readonly string[], env: NodeJS.ProcessEnv) {
  const child = startOnTerminal(command, env)
  let shown = ''
  child.stdout.on('data', (chunk) => {
    const isAsked = shown.includes(question)
    shown += chunk
    if (!isAsked && shown.includes(question)) child.stdin.write('\x03')
  })
  const [code] = await once(child, 'close')
  return { code, shown }
}

/** The output of a command on a terminal of 80 columns, and its exit code; `input` is typed. */
export function onTerminal(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  input = '',
): Promise<{ code: number; shown: string }> {
  needTools(tool)
  const line = `stty cols 80 rows 24; ${quoted(command)}`
  return new Promise((resolve) => {
    const child = execFile(
      tool,
      ['-qec', line, '/dev/null'],
      { env: { ...env, TERM: 'xterm' } },
      (error, stdout) => resolve({ code: typeof error?.code === 'number' ? error.code : 0, shown: stdout }),
    )
    // The command may end before it has read all.
    child.stdin?.on('error', () => undefined).end(input)
  })
}
