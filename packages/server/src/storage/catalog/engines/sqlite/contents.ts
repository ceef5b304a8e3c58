import { extname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import {
  lowerOwnPriority,
  OnDemandThread,
  type Outcome,
  serveBatches,
  startBatchThread,
} from '../../../batch-threads.ts'
import type { ContentId } from '../../records.ts'
import { bytes } from '../../statements.ts'
import { asFault, one, openConnection, prepareSnapshots, readTimeout, withFaults } from './sqlite-database.ts'

/** Null if the item was deleted. */
type Content = Uint8Array<ArrayBuffer> | null

/** Reads bytes of items. */
export interface ContentReader {
  read(id: ContentId): Promise<Content>
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
  const thread = new OnDemandThread((onFailure) =>
    startBatchThread<ContentId, Content, null>({
      file,
      name: 'content-reader',
      workerData: { directory },
      onReport: () => undefined,
      onFailure,
    }),
  )
  return {
    read: (id) => new Promise((resolve, reject) => thread.send(id, { resolve, reject })),
    close: () => thread.close(),
  }
}

/** The side of the thread. */
export function serveContents(directory: string): void {
  lowerOwnPriority()
  const db = openConnection(directory, readTimeout)
  // A larger page cache would have few hits, because each read needs different pages. The operating system caches them.
  db.exec('PRAGMA query_only = ON; PRAGMA cache_size = -4096')
  const read = prepareReadContent(db)
  const snapshots = prepareSnapshots(db)

  function readOne(id: ContentId): Outcome<Content> {
    try {
      return { output: read(id) }
    } catch (error) {
      return { error: asFault(error) }
    }
  }

  serveBatches<ContentId, Content, null>(
    (ids, reply) => {
      snapshots.begin()
      const outcomes = ids.map(readOne)
      snapshots.end()
      const buffers = outcomes.flatMap((outcome) =>
        'output' in outcome && outcome.output ? [outcome.output.buffer] : [],
      )
      reply(outcomes, null, buffers)
    },
    () => db.close(),
  )
}

function prepareReadContent(db: DatabaseSync): (id: ContentId) => Content {
  const select = db.prepare('SELECT bytes FROM contents WHERE id = ?')
  return (id) => {
    const row = one(select, id)
    return row && bytes(row, 0)
  }
}
