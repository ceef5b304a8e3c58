import { Fault } from '../core/fault.ts'
import type { Copied } from '../upkeep/copy-blobs.ts'
import { copyFaults } from '../upkeep/faulty-items.ts'
import { formatSize } from './client/terminal-text.ts'
import { CommandError } from './command.ts'
import { formatCount } from './table.ts'

/** The exit code of a backup or a restore that is complete but for the bytes of some items. */
export const incompleteExit = 5

/** Items that are named on the terminal. */
const shown = 20

/** For people: what came of a backup or a restore. Sets the exit code where items have no bytes. */
export function* copyReportLines(done: string, result: Copied, path: string): Generator<string> {
  const { items, copied, bytes, present, faulty } = result
  yield `${done} ${formatCount(items, 'item')} (${copied} copied with ${formatSize(bytes)}, ${present} there already) to ${path}.`
  if (faulty.length === 0) return
  process.exitCode = incompleteExit
  yield `${formatCount(faulty.length, 'item')} without bytes:`
  for (const { id, what } of faulty.slice(0, shown)) yield `  ${id} ${what}: ${copyFaults[what]}`
  if (faulty.length > shown) yield `  and ${faulty.length - shown} more`
}

/** What to do where the target is full; any other error as it is. */
export const explainCopyError = (error: unknown, path: string): unknown =>
  error instanceof Fault && error.code === 'storage-full'
    ? new CommandError(`there is no room left in ${path}; free some, then run the same command again`)
    : error
