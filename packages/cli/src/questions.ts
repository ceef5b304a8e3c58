import { createInterface } from 'node:readline/promises'
import { CommandError } from './command.ts'

/** Asks on the terminal. What is typed is shown on `output`. */
export async function ask(question: string, output: NodeJS.WritableStream): Promise<string> {
  const lines = createInterface({ input: process.stdin, output, terminal: true })
  // The terminal sends no signal while the line is edited.
  lines.on('SIGINT', () => {
    // Without a handler, the signal ends the process.
    if (process.listenerCount('SIGINT') > 0) process.once('SIGINT', () => ended.abort())
    process.kill(process.pid, 'SIGINT')
  })
  const ended = new AbortController()
  lines.once('close', () => ended.abort())
  try {
    return await lines.question(question, { signal: ended.signal })
  } catch (error) {
    // Ctrl-D, or the end of the terminal.
    if (error instanceof Error && error.name === 'AbortError')
      throw new CommandError('the input ended before the answer. Nothing was changed.')
    throw error
  } finally {
    lines.close()
  }
}

/** Asks whether to go on. Only `y` and `yes` are one. */
export const confirm = async (question: string): Promise<boolean> =>
  /^y(es)?$/i.test((await ask(`${question} [y/N] `, process.stderr)).trim())
