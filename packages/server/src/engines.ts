import type { BlobStore } from './blobs/blobs.ts'
import { openDiskBlobs } from './blobs/disk/disk-blobs.ts'
import type { Catalog } from './catalog/catalog.ts'
import { openSqliteCatalog } from './catalog/sqlite/catalog.ts'
import { acquireDataLock } from './catalog/sqlite/data-lock.ts'
import { seedBucket as seedSqliteBucket } from './catalog/sqlite/seed.ts'
import type { Config } from './config.ts'

// The only file that names engines: what keeps the rows, and what keeps the bytes.

export { DataLockedError } from './catalog/sqlite/data-lock.ts'

/** `thread` for the server, which writes all the time; `direct` for a command, which writes once. */
type Writer = { writer: 'thread'; onWriterFailure: (error: Error) => void } | { writer: 'direct' }

export const openCatalog = (config: Config, writer: Writer): Promise<Catalog> =>
  openSqliteCatalog({ directory: config.data, ...writer })

export const openBlobs = (config: Config): Promise<BlobStore> => openDiskBlobs({ directory: config.data })

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
