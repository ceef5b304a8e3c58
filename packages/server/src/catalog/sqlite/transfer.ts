import type { DatabaseSync } from 'node:sqlite'
import {
  type CatalogSource,
  type CatalogTarget,
  createSource,
  createTarget,
  type TransferEngine,
  transferKey,
} from '../transfer.ts'
import { isNew, readMeta } from '../upkeep.ts'
import { prepareInsertEvents } from './audit-log.ts'
import { readTimeout } from './connection.ts'
import { openForTransfer } from './data-directory.ts'
import { prepareInsertItem } from './media-rows.ts'
import { asFault } from './sqlite-errors.ts'
import { createRun } from './statements.ts'
import { runTransaction } from './transaction.ts'
import { unmarkTransfer } from './transfer-marks.ts'

export async function openSqliteSource(directory: string): Promise<CatalogSource> {
  return createSource(engineOf(openForTransfer(directory, readTimeout)))
}

export async function openSqliteTarget(directory: string): Promise<CatalogTarget> {
  const db = openForTransfer(directory)
  const describe = db.prepare('UPDATE items SET alt_text = ?, caption = ? WHERE id = ?')
  const markTrashed = db.prepare('UPDATE items SET home_seq = ?, deleted_at = ?, expires_at = ? WHERE id = ?')
  const addDamaged = db.prepare('INSERT INTO damaged (id) VALUES (?)')
  const insertItem = prepareInsertItem(db)
  const insertEvents = prepareInsertEvents(db)
  const engine = engineOf(db)
  const target = createTarget(engine, {
    isUnfinished: async () =>
      (await engine.query(readMeta(transferKey))) !== null || (await engine.query(isNew())),

    addItems: (items) =>
      inTransaction(db, () => {
        for (const item of items) {
          const { id, altText, caption } = item.item
          insertItem(item.bucketId, item.seq, { ...item.item, bytes: item.bytes })
          if (altText !== null || caption !== null) describe.run(altText, caption, id)
          if (item.trashed !== null)
            markTrashed.run(item.trashed.homeSeq, item.trashed.deletedAt, item.trashed.expiresAt, id)
          if (item.isDamaged) addDamaged.run(id)
        }
      }),

    addEvents: (events) => inTransaction(db, () => insertEvents(events, ([time]) => time)),
  })
  return {
    ...target,
    async begin(state, buckets) {
      const last = await target.begin(state, buckets)
      unmarkTransfer(directory)
      return last
    },
  }
}

function engineOf(db: DatabaseSync): TransferEngine {
  const run = createRun(db)
  return {
    name: 'sqlite',
    query: async (query) => run(query),
    change: (work) => inTransaction(db, () => run(work())),
    async close() {
      if (db.isOpen) db.close()
    },
  }
}

async function inTransaction<T>(db: DatabaseSync, action: () => T): Promise<T> {
  try {
    return runTransaction(db, action)
  } catch (error) {
    throw asFault(error)
  }
}
