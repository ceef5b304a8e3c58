import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

const sqlite = new URL('../../../src/storage/catalog/engines/sqlite/', import.meta.url)

/**
 * Runs `body` in another process, with the exports of a module of the SQLite engine in scope as `module`, and the URL of its folder as
 * `modules`.
 */
export function startProcess(file: string, body: string): ChildProcess {
  const code = `const modules = '${sqlite}'; const module = await import('${new URL(file, sqlite)}'); ${body}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // A process that is killed can reset the pipe of its output.
  child.stdout.on('error', () => undefined)
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  return child
}

/** The complete output of the process. */
export async function outputOf(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error('the process has no output')
  return (await text(child.stdout)).trim()
}

/** The first output of the process. */
export async function firstOutput(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error('the process has no output')
  const [chunk] = await once(child.stdout, 'data')
  return String(chunk).trim()
}

export async function killHard(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
