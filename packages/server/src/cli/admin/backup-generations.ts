import { join } from 'node:path'
import { exitCodes, UsageError } from '@mediabucket/cli/command'
import { shellWord } from '@mediabucket/cli/processes'
import { createItemProgress, formatCount, formatSize, table } from '@mediabucket/cli/terminal'
import { copyBackup, openBlobs, openCopyableInspection } from '../../storage/engines.ts'
import { type BackupResult, type FinishedBackup, readGenerations } from '../../upkeep/backup.ts'
import { verifyBackup } from '../../upkeep/backup-verification.ts'
import type { CommandContext } from '../command.ts'
import { faultyItemLines } from './copy-report.ts'

/** How many backups a directory keeps. Throws UsageError. */
export function readKeep(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text)
  throw new UsageError(`--keep takes a number of backups from 1 to 9999, not "${text}"`)
}

/** What a backup did with earlier ones, as lines of text. Sets the exit code if bytes stay that no backup needs. */
export function* generationLines({ generations, removal }: BackupResult): Generator<string> {
  if (removal === undefined) return
  yield `${formatCount(generations, 'backup')} kept.`
  if (removal === null) {
    process.exitCode = exitCodes.incomplete
    yield 'No bytes were removed, because the list of one of them is missing or damaged. Run mediabucket backup --verify for each.'
  } else if (removal.removed > 0)
    yield `Removed the bytes of ${formatCount(removal.removed, 'item')} that none of them needs (${formatSize(removal.bytes)}).`
}

/** Prints the backups in a directory, the latest first. Throws BackupError. */
export async function listGenerations(path: string, { print }: Pick<CommandContext, 'print'>): Promise<void> {
  const generations = await readGenerations(path)
  for (const line of table(generationColumns, generations, { header: process.stdout.isTTY })) print(line)
}

const generationColumns = [
  { header: 'FINISHED', cell: ({ finishedAt }: FinishedBackup) => finishedAt },
  { header: 'ITEMS', cell: ({ items }: FinishedBackup) => `${items}` },
  { header: 'FAULTS', cell: ({ faulty }: FinishedBackup) => `${faulty.length}` },
]

/** Verifies a backup, as verifyBackup, and prints the result. Sets the exit code if items have no bytes or wrong ones. */
export async function verifyGeneration(
  path: string,
  at: string | null,
  { print }: Pick<CommandContext, 'print'>,
): Promise<void> {
  const progress = createItemProgress('Verified')
  try {
    const { backup, items, bytes, faulty } = await verifyBackup({
      ...{ directory: path, at },
      copyRows: copyBackup,
      openInspection: (data) => openCopyableInspection({ data }),
      openBlobs: (data) => openBlobs({ data }),
      onItem: progress.show,
    })
    progress.end()
    print(
      `Verified the backup of ${backup.finishedAt} in ${path}: ${formatCount(items, 'item')}, ${formatSize(bytes)}.`,
    )
    for (const line of faultyItemLines(faulty)) print(line)
    if (faulty.length === 0) print('No faults were found.')
    else
      print(
        `→ Delete the changed files from ${join(path, 'blobs')}, then run: mediabucket backup ${shellWord(path)}`,
      )
  } finally {
    progress.end()
  }
}
