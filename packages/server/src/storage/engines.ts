import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { S3Location } from '../core/storage-urls.ts'
import { type Actor, service } from '../core/token-rules.ts'
import type { BlobInspection, BlobStore, BlobsDirectory, IntentLog, PartLog } from './blobs/blobs.ts'
import type { AuditLog } from './catalog/audit/audit-log.ts'
import type { Catalog } from './catalog/catalog.ts'
import type { CatalogInspection, CopyableInspection } from './catalog/checks/inspection.ts'
import {
  findExposedEntries,
  markNewDirectory,
  markTransfer as markSqliteTransfer,
  readSqliteOwner,
  requireDirectory,
  unmarkTransfer,
} from './catalog/engines/sqlite/data-directory.ts'
import {
  acquireDataLock,
  acquireBackupHold as acquireSqliteBackupHold,
  acquireWorkerLock,
  watchBackupHold as watchSqliteBackupHold,
} from './catalog/engines/sqlite/locks.ts'
import { catalogLocation, createBallast } from './catalog/engines/sqlite/sqlite-database.ts'
import type { CatalogRows, CatalogSource, CatalogTarget } from './catalog/transfer.ts'
import type { BlobsOwner, CatalogVacuum } from './catalog/upkeep.ts'

// The only file that imports engines: SQLite or PostgreSQL for the rows, the disk or S3 for the bytes. Only what is used is loaded.

export { DataLockedError } from './catalog/engines/sqlite/locks.ts'

/** `thread` for the server, so that commits do not block requests; `direct` for a command. */
type Writer =
  | {
      writer: 'thread'
      onWriterFailure: (error: Error) => void
      onCommit: (seconds: number) => void
      onRenewal: () => void
    }
  | { writer: 'direct'; actor: Actor }

/** The settings of the service that say where its data is, and how it is stored (docs/settings.md). */
export interface StorageSettings {
  readonly data: string
  /** Null for SQLite in the data directory. */
  readonly databaseUrl: string | null
  /** Null for the data directory. */
  readonly blobsUrl: S3Location | null
  /** Bytes. Files of up to this size are stored in the catalog. */
  readonly inlineSize: number
  readonly audit: 'off' | 'changes' | 'all'
}

export async function openCatalog(
  { data, databaseUrl: url, audit }: StorageSettings,
  writer: Writer,
): Promise<Catalog> {
  const isCommand = writer.writer === 'direct'
  const actor = audit === 'off' ? null : isCommand ? writer.actor : service
  // The environment of a command can lack the setting of the service.
  const actorIfAudited = isCommand ? writer.actor : null
  if (url === null) {
    const { openSqliteCatalog } = await import('./catalog/engines/sqlite/sqlite-catalog.ts')
    return openSqliteCatalog({ directory: data, ...writer, actor, actorIfAudited })
  }
  const { openPostgresCatalog } = await import('./catalog/engines/postgres/postgres-catalog.ts')
  return writer.writer === 'direct'
    ? openPostgresCatalog({ url, role: 'command', actor, actorIfAudited })
    : openPostgresCatalog({ url, role: 'server', ...writer, actor })
}

type Data = Pick<StorageSettings, 'data'>
type CatalogLocation = Pick<StorageSettings, 'data' | 'databaseUrl'>

/** Without `blobsUrl`, the bytes are in the data directory, as in every backup. */
type Blobs = Data & Partial<Pick<StorageSettings, 'inlineSize' | 'blobsUrl'>>

/** With `thread` for the server; without it for a command. Without `logs` for commands and backups, which have no uploads. */
export async function openBlobs(
  { data: directory, inlineSize = 0, blobsUrl = null }: Blobs,
  logs?: { readonly intents: IntentLog; readonly parts?: PartLog },
  thread?: {
    /** A name for the temporary files of this process, if the server has several. */
    readonly owner?: string | undefined
    readonly onSync: (seconds: number) => void
    readonly onVariantDamage: (reason: string) => void
  },
): Promise<BlobStore> {
  if (blobsUrl === null) {
    const { openDiskBlobs } = await import('./blobs/disk/disk-blobs.ts')
    return openDiskBlobs({
      directory,
      ...(logs && { intents: logs.intents }),
      ...(thread && { inlineSize, thread }),
    })
  }
  const { S3Blobs } = await import('./blobs/s3/s3-blobs.ts')
  return new S3Blobs({ location: blobsUrl, ...(logs && { logs }) })
}

/** For a migration into this store. The items of all bytes exist already, so an interruption leaves no bytes without an item. */
export const openBlobsTarget = (config: Blobs): Promise<BlobStore> =>
  openBlobs(config, { intents: { record: async () => undefined, clear: async () => undefined } })

/** False if no server has used the directory, or the database, yet. Throws DatabaseError. */
export async function hasData({ data, databaseUrl: url }: CatalogLocation): Promise<boolean> {
  if (url === null) return existsSync(join(data, 'catalog.db'))
  const { hasPostgresCatalog } = await import('./catalog/engines/postgres/postgres-database.ts')
  return hasPostgresCatalog(url)
}

/**
 * Which bytes belong to the catalog that a start would open; null if there is no catalog. Changes nothing. Throws as openCatalog does.
 */
export async function readBlobsOwner({
  data,
  databaseUrl: url,
}: CatalogLocation): Promise<BlobsOwner | null> {
  if (url === null) return readSqliteOwner(data)
  const { readPostgresOwner } = await import('./catalog/engines/postgres/postgres-database.ts')
  return readPostgresOwner(url)
}

/** For checks. */
export async function openInspection({
  data,
  databaseUrl: url,
}: CatalogLocation): Promise<CatalogInspection> {
  if (url === null) return openCopyableInspection({ data })
  const { openPostgresInspection } = await import('./catalog/engines/postgres/postgres-database.ts')
  return openPostgresInspection(url)
}

/** Reads the audit log. */
export async function openAuditLog({ data, databaseUrl: url }: CatalogLocation): Promise<AuditLog> {
  if (url === null) {
    const { openSqliteAuditLog } = await import('./catalog/engines/sqlite/sqlite-audit-log.ts')
    return openSqliteAuditLog(data)
  }
  const { openPostgresAuditLog } = await import('./catalog/engines/postgres/postgres-audit-log.ts')
  return openPostgresAuditLog(url)
}

/** For a migration from this catalog. */
export async function openCatalogSource({ data, databaseUrl: url }: CatalogLocation): Promise<CatalogSource> {
  if (url === null) {
    const { openSqliteSource } = await import('./catalog/engines/sqlite/sqlite-transfer.ts')
    return openSqliteSource(data)
  }
  const { openPostgresSource } = await import('./catalog/engines/postgres/postgres-transfer.ts')
  return openPostgresSource(url)
}

/** Calls `work` with the rows of the database as of one moment, while servers write. */
export async function readDatabaseSnapshot<T>(
  url: string,
  work: (source: CatalogRows) => Promise<T>,
): Promise<T> {
  const { readPostgresSnapshot } = await import('./catalog/engines/postgres/postgres-transfer.ts')
  return readPostgresSnapshot(url, work)
}

/** Before anything else is created for a migration into this catalog: from then on no service starts on it. */
export async function markTransfer(place: CatalogLocation): Promise<void> {
  if (place.databaseUrl === null) markSqliteTransfer(place.data)
  // Opening it has this effect.
  else await (await openCatalogTarget(place)).close()
}

/** The same for a directory that no service uses. Throws DataDirectoryError if it has files of anything but an interrupted migration. */
export const markDirectory = ({ data, databaseUrl }: CatalogLocation): void =>
  markNewDirectory(data, databaseUrl === null)

/** Removes the mark of a directory, after a migration. */
export const unmarkDirectory = ({ data }: Data): void => unmarkTransfer(data)

/** For a migration into this catalog, which must be empty. */
export async function openCatalogTarget({ data, databaseUrl: url }: CatalogLocation): Promise<CatalogTarget> {
  if (url === null) {
    const { openSqliteTarget } = await import('./catalog/engines/sqlite/sqlite-transfer.ts')
    return openSqliteTarget(data)
  }
  const { openPostgresTarget } = await import('./catalog/engines/postgres/postgres-transfer.ts')
  return openPostgresTarget(url)
}

/** For backups and restores. Opens a data directory or a backup. */
export async function openCopyableInspection({ data }: Data): Promise<CopyableInspection> {
  const { openSqliteInspection } = await import('./catalog/engines/sqlite/sqlite-inspection.ts')
  return openSqliteInspection(data)
}

/** Copies the catalog of a backup into a directory. Throws CatalogVersionError. */
export async function copyBackup(rows: string, directory: string): Promise<void> {
  const { copyBackup } = await import('./catalog/engines/sqlite/sqlite-transfer.ts')
  copyBackup(rows, directory)
}

/** Returns the free space of the catalog to the file system. */
export async function openVacuum({ data }: Data): Promise<CatalogVacuum> {
  const { openSqliteVacuum } = await import('./catalog/engines/sqlite/sqlite-inspection.ts')
  return openSqliteVacuum(data)
}

export async function openBlobInspection({
  data: directory,
  blobsUrl,
}: Data & Pick<StorageSettings, 'blobsUrl'>): Promise<BlobInspection> {
  if (blobsUrl === null) {
    const { openDiskInspection } = await import('./blobs/disk/disk-inspection.ts')
    return openDiskInspection({ directory })
  }
  const { openS3Inspection } = await import('./blobs/s3/s3-inspection.ts')
  return openS3Inspection(blobsUrl)
}

/** Delays the removal of the bytes of deleted items until `release` (docs/interface.md F6). Throws BackupHoldError. */
export const acquireBackupHold = (config: StorageSettings): { release(): void } =>
  acquireSqliteBackupHold(config.data)

/** Reports whether any process holds a backup hold. */
export const watchBackupHold = (config: StorageSettings): { isHeld(): boolean; close(): void } =>
  watchSqliteBackupHold(config.data)

/** Where the bytes are. The identity there is compared with the catalog's before the store is used. */
export async function openBlobsDirectory({
  data,
  blobsUrl,
}: Data & Pick<StorageSettings, 'blobsUrl'>): Promise<BlobsDirectory> {
  if (blobsUrl === null) {
    const { DiskBlobsDirectory } = await import('./blobs/disk/blobs-directory.ts')
    return new DiskBlobsDirectory(data)
  }
  const { S3Directory } = await import('./blobs/s3/s3-blobs.ts')
  return new S3Directory(blobsUrl)
}

/** Where the service uses the space of this machine. */
export interface SpacePlaces {
  /** The directory of the bytes; null if they are elsewhere. */
  readonly blobs: string | null
  /** Null if the rows are elsewhere. */
  readonly catalog: {
    directory(): string
    /** Bytes of the ballast, which counts as free. */
    held(): number
  } | null
}

export const spacePlaces = ({
  data,
  databaseUrl,
  blobsUrl,
}: Pick<StorageSettings, 'data' | 'databaseUrl' | 'blobsUrl'>): SpacePlaces => ({
  blobs: blobsUrl === null ? join(data, 'blobs') : null,
  catalog: databaseUrl === null ? catalogLocation(data) : null,
})

/** Creates the ballast, space that deletes can use on a full disk. */
export const ensureBallast = (config: Data, reserve: number): Promise<void> =>
  createBallast(config.data, reserve)

/** Checks that this user can create the data directory, or use it; removes what it creates for that. Throws DataDirectoryError. */
export const requireDataDirectory = (config: Data): void => requireDirectory(config.data)

/** Names in the data directory that other users of the machine can read, write or enter. */
export const findExposed = (config: Data): string[] => findExposedEntries(config.data)

/** Allows one server for each data directory (docs/interface.md O6). Throws DataLockedError. */
export const lockData = (config: StorageSettings): { release(): void } => acquireDataLock(config.data)

/** For a worker of a server: a start of the next server waits until the worker has ended. */
export const lockWorker = (config: StorageSettings): { release(): void } => acquireWorkerLock(config.data)
