import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { until } from './until.ts'

/** Empty if the process has ended. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

export const isRunning = (pid: number): boolean => commandOf(pid) !== ''

export const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

/** Sends the signal, unless the process has ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  if (isRunning(pid)) process.kill(pid, name)
}

/** Calls `work` while the process does nothing, so that a copy of its files is like a snapshot of the disk. */
export async function whileStopped(
  { process }: { readonly process: ChildProcess },
  work: () => Promise<void>,
): Promise<void> {
  const { pid } = process
  process.kill('SIGSTOP')
  await until('the stop of the process', async () =>
    /^State:\s+T/m.test(await readFile(`/proc/${pid}/status`, 'utf8')),
  )
  try {
    await work()
  } finally {
    process.kill('SIGCONT')
  }
}
