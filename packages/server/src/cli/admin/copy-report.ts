import { CommandError, exitCodes } from '@mediabucket/cli/command'
import { formatCount, formatSize } from '@mediabucket/cli/terminal'
import { Fault } from '../../core/faults.ts'
import { type CopyResult, copyFaults } from '../../upkeep/copies.ts'

/** How many items are listed by id. */
const listed = 20

/** The result of a copy as lines of text. Sets the exit code if items have no bytes. */
export function* copyReportLines(done: string, result: CopyResult, path: string): Generator<string> {
  const { items, copied, bytes, present, inCatalog, faulty } = result
  const small = inCatalog === 0 ? '' : `; the bytes of ${inCatalog} are in the catalog`
  yield `${done} ${formatCount(items, 'item')} to ${path}: ${copied} copied (${formatSize(bytes)}), ${present} already there${small}.`
  yield* faultyItemLines(faulty)
}

/** Items whose bytes could not be copied. Sets the exit code if there are any. */
export function* faultyItemLines(faulty: CopyResult['faulty']): Generator<string> {
  if (faulty.length === 0) return
  process.exitCode = exitCodes.incomplete
  const hasLost = faulty.some(({ what }) => what === 'lost')
  yield `${formatCount(faulty.length, 'item')} without ${hasLost ? 'rows or bytes' : 'bytes'}:`
  for (const { id, what } of faulty.slice(0, listed)) yield `  ${id} ${what}: ${copyFaults[what]}`
  if (faulty.length > listed) yield `  and ${faulty.length - listed} more`
}

/** Explains a full target; returns any other error unchanged. */
export const explainCopyError = (error: unknown, path: string): unknown =>
  error instanceof Fault && error.code === 'storage-full'
    ? new CommandError(`the disk of ${path} is full. Free some space, then run the same command again.`)
    : error
