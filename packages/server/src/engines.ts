import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { BlobAudit } from './blobs/audit.ts'
import type { BlobStore } from './blobs/blobs.ts'
import { type BlobsDirectory, openDiskBlobsDirectory } from './blobs/disk/blobs-directory.ts'
import { openDiskAudit } from './blobs/disk/disk-audit.ts'
import { openDiskBlobs } from './blobs/disk/disk-blobs.ts'
import { diskSpace } from './blobs/disk/disk-space.ts'
import type { CatalogAudit } from './catalog/audit.ts'
import type { Catalog } from './catalog/catalog.ts'
import { openSqliteAudit } from './catalog/sqlite/audit.ts'
import {
  acquireBackupHold as acquireSqliteBackupHold,
  watchBackupHold as watchSqliteBackupHold,
} from './catalog/sqlite/backup-hold.ts'
import { catalogDirectory, heldByBallast, makeBallast } from './catalog/sqlite/ballast.ts'
import { openSqliteCatalog } from './catalog/sqlite/catalog.ts'
import { acquireDataLock } from './catalog/sqlite/data-lock.ts'
import { exposedEntries } from './catalog/sqlite/exposed-entries.ts'
import { seedBucket as seedSqliteBucket } from './catalog/sqlite/seed.ts'
import type { Config } from './config.ts'
import { defaultReserve, type FileSystemSpace } from './core/file-system-space.ts'

// The only file that names engines: what keeps the rows, and what keeps the bytes.

export { ForeignEntry } from './blobs/disk/shards.ts'
export { BackupHoldError } from './catalog/sqlite/backup-hold.ts'
export { DataDirectoryError } from './catalog/sqlite/data-directory-error.ts'
export { DataLockedError } from './catalog/sqlite/data-lock.ts'
export { CatalogVersionError } from './catalog/sqlite/migrate.ts'

/** `thread` for the server, which writes all the time; `direct` for a command, which writes once. */
type Writer =
  | { writer: 'thread'; onWriterFailure: (error: Error) => void; onCommit: (seconds: number) => void }
  | { writer: 'direct' }

export const openCatalog = (config: Config, writer: Writer): Promise<Catalog> =>
  openSqliteCatalog({ directory: config.data, ...writer })

type Data = Pick<Config, 'data'>

/** With a thread for the server, which stores all the time; a command needs none. */
export const openBlobs = (
  { data: directory }: Data,
  thread?: { readonly onFailure: (error: Error) => void; readonly onSync: (seconds: number) => void },
): Promise<BlobStore> => openDiskBlobs(thread === undefined ? { directory } : { directory, thread })

/** False where no service has ever kept anything. */
export const hasData = (config: Data): boolean => existsSync(join(config.data, 'catalog.db'))

/** What checks, backups and restores ask of the rows and the bytes; any directory that is laid out like the data. */
export const openAudit = (config: Data): Promise<CatalogAudit> => openSqliteAudit(config.data)
export const openBlobAudit = (config: Data): Promise<BlobAudit> => openDiskAudit({ directory: config.data })

/** Keeps the bytes of items that are deleted from now on (docs/interface.md F6). Throws BackupHoldError. */
export const acquireBackupHold = (config: Config): { release(): void } => acquireSqliteBackupHold(config.data)

export const watchBackupHold = (config: Config): { isHeld(): boolean; close(): void } =>
  watchSqliteBackupHold(config.data)

/** The directory of the bytes, before anything in it is used. */
export const openBlobsDirectory = ({ data }: Data): BlobsDirectory => openDiskBlobsDirectory(data)

type Space = Pick<Config, 'data' | 'minFree'>

/** The file systems of bytes and rows, which may be one. The ballast counts as free. */
export function readSpaces({ data, minFree }: Space): FileSystemSpace[] {
  const bytes = join(data, 'blobs')
  // Without its disk the store refuses uploads itself (S9).
  const blobs = existsSync(bytes) ? diskSpace(bytes) : null
  const catalog = diskSpace(catalogDirectory(data))
  const ballast = heldByBallast(data)
  const space = (stores: FileSystemSpace['stores'], { free, total }: typeof catalog, held: number) => ({
    stores,
    free: free + held,
    total,
    reserve: minFree ?? defaultReserve(total),
  })
  if (blobs === null) return [space('catalog', catalog, ballast)]
  if (blobs.device === catalog.device) return [space('blobs and catalog', blobs, ballast)]
  return [space('blobs', blobs, 0), space('catalog', catalog, ballast)]
}

/** Sets space aside that deletes can use on a full disk, where the reserve leaves it. */
export async function ensureBallast(config: Space): Promise<void> {
  const catalog = readSpaces(config).find(({ stores }) => stores !== 'blobs')
  if (catalog && catalog.free >= catalog.reserve) await makeBallast(config.data, catalog.reserve)
}

/** Names in the data directory that other users of the machine may use. */
export const findExposed = (config: Data): string[] => exposedEntries(config.data)

/** One server for each data directory (docs/interface.md O6). Throws DataLockedError. */
export const lockData = (config: Config): { release(): void } => acquireDataLock(config.data)

interface Seeding {
  readonly bucket: string
  readonly items: number
  readonly deleteEvery?: number
  readonly onProgress?: (done: number, of: number) => void
}

export const seedBucket = (config: Config, seeding: Seeding): Promise<{ total: number }> =>
  seedSqliteBucket({ directory: config.data, ...seeding })
