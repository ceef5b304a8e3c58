import { randomBytes } from 'node:crypto'
import { CommandError, exitCodes, parse, UsageError } from '@mediabucket/cli/command'
import { createItemProgress } from '@mediabucket/cli/terminal'
import type { Config } from '../../service/config.ts'
import { copyEvent } from '../../storage/catalog/audit/audit-events.ts'
import type { MissingRows } from '../../storage/catalog/checks/inspection.ts'
import {
  acquireBackupHold,
  copyBackup,
  lockData,
  openBlobInspection,
  openBlobs,
  openBlobsDirectory,
  openCatalogTarget,
  openCopyableInspection,
  readDatabaseSnapshot,
} from '../../storage/engines.ts'
import { requireBlobsDirectory } from '../../upkeep/blobs-identity.ts'
import type { Command } from '../command.ts'
import { copyReportLines, explainCopyError } from './copy-report.ts'
import { recordCommand, requireData, requireLocalCatalog, withCatalog } from './open-catalog.ts'

export const backup: Command = {
  help: `Usage: mediabucket backup DIR [--keep N]
       mediabucket backup --list DIR
       mediabucket backup --verify DIR [--at TIME]

Copies the rows and the bytes as of one moment to DIR, and syncs them. DIR is created if it does not exist, and must be
outside the data directory. Works while the service is running; bytes of items that are deleted during the backup stay on the
disk until it ends.

A later backup to the same DIR copies only new bytes, and replaces the earlier backup in one step when it is complete.
An interrupted backup leaves the earlier one intact; run it again to complete it.

Every byte is hashed while it is copied. An item whose bytes are missing, unreadable or changed is reported by its id
and listed in DIR/backup.json; all other items are copied. The exit code is ${exitCodes.incomplete} if there are such items.

With PostgreSQL, the rows are written to DIR as a SQLite catalog too. restore creates a directory from it, and migrate
copies that to a database.

Without --keep, DIR has one backup, and keeps the bytes of items that were deleted after an earlier one.

Options:
  --keep N   Keep the last N backups (generations), which share bytes. Each can be restored: restore DIR --at TIME. Bytes
             that none of them needs are removed. Later backups to DIR do the same without the option. One backup at a time
             may use DIR.
  --list     List the backups in DIR.
  --verify   Read the last backup in DIR, or that of --at, and compare all rows and bytes with their hashes. Changes nothing.
             The exit code is 1 if the rows are damaged, ${exitCodes.incomplete} if items have no bytes or wrong ones.
  --at TIME  The backup that was finished at this time, or whose time begins so, such as 2026-11-28T03.`,

  async run(args, context) {
    const { values, positionals } = parse('backup', {
      args: [...args],
      allowPositionals: true,
      options: {
        keep: { type: 'string' },
        list: { type: 'boolean' },
        verify: { type: 'boolean' },
        at: { type: 'string' },
      },
    })
    const [path, ...more] = positionals
    if (!path || more.length > 0) throw new UsageError('backup takes one DIR, the target directory')
    if ([values.keep !== undefined, values.list, values.verify].filter(Boolean).length > 1)
      throw new UsageError('backup takes one of --keep, --list and --verify')
    if (values.at !== undefined && !values.verify) throw new UsageError('--at needs --verify')
    // Loaded here, so that other commands start faster.
    const [{ backUp, openBackupDirectory }, generations] = await Promise.all([
      import('../../upkeep/backup.ts'),
      import('./backup-generations.ts'),
    ])
    if (values.list) return await generations.listGenerations(path, context)
    if (values.verify) return await generations.verifyGeneration(path, values.at ?? null, context)
    const keep = values.keep === undefined ? null : generations.readKeep(values.keep)
    const { config, print } = context
    await requireData(config)
    const identity = await withCatalog(config, async (catalog) => {
      await requireBlobsDirectory({ catalog, directory: await openBlobsDirectory(config) })
      const present = await catalog.dataIdentity()
      // Without one, as on a full disk, the data are backed up all the same.
      return present ?? (await catalog.claimDataIdentity(randomBytes(16).toString('hex')).catch(() => null))
    })
    // First, so that no other backup of these data creates the same directory.
    const hold = acquireBackupHold(config)
    const progress = createItemProgress('Copied')
    try {
      const directory = await openBackupDirectory(path, config.data, identity)
      const result = await backUp({
        snapshot: (into, earlier) => writeSnapshot(config, into, earlier),
        blobs: await openBlobs(config),
        directory,
        openInspection: (data) => openCopyableInspection({ data }),
        openBlobs: (data) => openBlobs({ data }),
        openBlobInspection: (data) => openBlobInspection({ data, blobsUrl: null }),
        identity,
        keep,
        onItem: progress.show,
      })
      // Erases the progress bar before the report is printed.
      progress.end()
      const faults = result.faulty.length
      await withCatalog(config, (catalog) =>
        catalog.recordUpkeep({ kind: 'backup', finishedAt: Date.now(), faults }),
      )
      for (const line of copyReportLines('Backed up', result, path)) print(line)
      for (const line of generations.generationLines(result)) print(line)
      if (result.hasLostEvents) {
        process.exitCode = exitCodes.incomplete
        print('Events of the audit log cannot be read, and the backup does not have them.')
      }
      if (faults > 0) print('  → Run mediabucket fsck --verify-bytes to check every item.')
    } catch (error) {
      throw explainCopyError(error, path)
    } finally {
      progress.end()
      hold.release()
    }
  },
}

/** Writes the rows as of one moment, as CopyableInspection.snapshot. Every backup has the form of a SQLite catalog. */
async function writeSnapshot(
  config: Config,
  directory: string,
  earlier: string | null,
): Promise<MissingRows> {
  const { databaseUrl } = config
  if (databaseUrl === null) {
    const inspection = await openCopyableInspection(config)
    return inspection.snapshot(directory, earlier).finally(inspection.close)
  }
  const { transferRows } = await import('../../upkeep/migration.ts')
  await readDatabaseSnapshot(databaseUrl, async (source) => {
    const target = await openCatalogTarget({ data: directory, databaseUrl: null })
    try {
      // Items whose bytes have changed are reported when the bytes are checked.
      await transferRows({ source, target, damaged: new Set(), onItems() {} })
      await target.finish()
    } finally {
      await target.close()
    }
  })
  return { items: [], hasLostEvents: false }
}

const localOnly =
  'Unset it, restore into a directory, and copy that to an empty database: mediabucket migrate --to postgres://…'

export const restore: Command = {
  help: `Usage: mediabucket restore DIR [--at TIME]
       mediabucket restore --renew

Copies the last completed backup in DIR to the directory MEDIABUCKET_DATA, which must be empty or not exist; no service
may run on it. Unfinished resumable uploads are ended.

Every byte is hashed while it is copied. An item whose bytes are missing or damaged in the backup is reported by its id
and restored without them: it is listed, and its URL responds with 500. The exit code is ${exitCodes.incomplete} if there are such items.

To complete an interrupted restore, run the same command again. Until then, no service starts on the directory.

Options:
  --at TIME  The backup that was finished at this time, or whose time begins so; \`mediabucket backup --list DIR\` shows the times.
  --renew    Restores nothing. For data that something else has set back to an earlier state: a snapshot of a disk, a copied
             directory, pg_restore, or a failover to a replica that lacked the last commits. Programs that follow the
             changes list the items again, webhooks send changes.lost, and caches ask again. Works while the service is
             running.`,

  async run(args, { config, print }) {
    const { values, positionals } = parse('restore', {
      args: [...args],
      allowPositionals: true,
      options: { at: { type: 'string' }, renew: { type: 'boolean', default: false } },
    })
    const [from, ...more] = positionals
    if (values.renew) {
      if (from !== undefined || values.at !== undefined)
        throw new UsageError('restore takes DIR or --renew, not both')
      await withCatalog(config, (catalog) => catalog.renewHistory())
      return print(
        'Renewed. Programs that follow the changes list the items again, and webhooks send changes.lost.',
      )
    }
    if (from === undefined || more.length > 0)
      throw new UsageError('restore takes one DIR, the directory of a backup')
    requireLocalCatalog(config, 'restore', localOnly)
    if (config.blobsUrl !== null)
      throw new CommandError(
        'restore writes files to the data directory, not to MEDIABUCKET_BLOBS_URL. Unset it to restore a backup to the data directory. To restore objects in an S3 store, use the tools of the store.',
      )
    // Loaded here, so that other commands start faster.
    const { restore: restoreBackup } = await import('../../upkeep/restore.ts')
    const progress = createItemProgress('Restored')
    try {
      const result = await restoreBackup({
        from,
        at: values.at ?? null,
        data: config.data,
        lock: () => lockData(config),
        copyRows: copyBackup,
        openInspection: (data) => openCopyableInspection({ data }),
        openBlobs: (data) => openBlobs({ data }),
        onItem: progress.show,
      })
      progress.end()
      for (const line of copyReportLines('Restored', result, config.data)) print(line)
      const counts = { items: result.items, faults: result.faulty.length }
      await recordCommand(config, (by) => copyEvent('backup-restore', counts, by))
    } catch (error) {
      throw explainCopyError(error, config.data)
    } finally {
      progress.end()
    }
  },
}
