import { extname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { startBatchThread, startOnDemand } from '../../batch-threads.ts'
import type { ContentId } from '../records.ts'
import { bytes } from '../statements.ts'
import { one, withFaults } from './database.ts'

/** Reads bytes of items; null if their item was deleted. */
export interface ContentReader {
  read(id: ContentId): Promise<Uint8Array<ArrayBuffer> | null>
  /** Finishes the pending reads. */
  close(): Promise<void>
}

/** For commands: reads on this thread, with the connection of the catalog. */
export function openDirectContentReader(db: DatabaseSync): ContentReader {
  const read = prepareReadContent(db)
  return {
    read: async (id) => withFaults(() => read(id)),
    close: async () => undefined,
  }
}

/**
 * For the server: a thread reads all bytes that were requested in one tick in one transaction, so that a slow disk does not
 * delay other requests.
 */
export function createContentReaderThread(directory: string): ContentReader {
  // The extension is .ts in the sources and .js in the published build.
  const file = new URL(`./content-reader-thread${extname(import.meta.url)}`, import.meta.url)
  const thread = startOnDemand((onFailure) =>
    startBatchThread<ContentId, Uint8Array<ArrayBuffer> | null, null>({
      file,
      name: 'content-reader',
      workerData: { directory },
      onReport: () => undefined,
      onFailure,
    }),
  )
  return {
    read: (id) => new Promise((resolve, reject) => thread.send(id, { resolve, reject })),
    close: thread.close,
  }
}

/** Reads bytes by id; null if there are none. */
export function prepareReadContent(db: DatabaseSync): (id: ContentId) => Uint8Array<ArrayBuffer> | null {
  const select = db.prepare('SELECT bytes FROM contents WHERE id = ?')
  return (id) => {
    const row = one(select, id)
    return row && bytes(row, 0)
  }
}
