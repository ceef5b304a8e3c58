import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isItemId } from '../../core/media-id.ts'
import { isVariantKey } from '../../core/variant.ts'
import type { BlobEntry } from '../audit.ts'
import { createSyncedFile } from './create-synced-file.ts'
import type { Files } from './files.ts'
import { openVariantRows, type VariantRows, VariantsDamaged, variantDatabase } from './variant-rows.ts'

/** The most rows that one read returns. */
const batchLength = 500

/** The rows of `variants.db` as entries of an audit, with the paths `variants.db/<name>`. A server may be running. */
export interface VariantRowsAudit {
  owns(path: string): boolean
  /** A database that is damaged, or has a row that the service did not write, is one foreign entry. */
  entries(): Generator<BlobEntry>
  exists(path: string): boolean
  /** Moves a row into a new file and syncs it; false if the row was removed in the meantime. */
  move(path: string, target: string): Promise<boolean>
}

export function auditVariantRows(directory: string, files: Files): VariantRowsAudit {
  /** Opened for each use, because an audit is not closed. */
  function withRows<T>(work: (rows: VariantRows) => T, otherwise: T): T {
    if (!existsSync(join(directory, variantDatabase))) return otherwise
    const rows = openVariantRows(directory)
    try {
      return work(rows)
    } finally {
      rows.close()
    }
  }

  /** Null if there is no such row. A damaged row counts as missing, because the server never sends it. */
  function read(path: string): Uint8Array | null {
    try {
      return withRows((rows) => rows.read(basename(path)), null)
    } catch (error) {
      if (error instanceof VariantsDamaged) return null
      throw error
    }
  }

  return {
    owns: (path) => dirname(path) === variantDatabase,

    *entries() {
      let last: string | undefined = ''
      try {
        while (last !== undefined) {
          const after: string = last
          const found = withRows((rows) => rows.list(after, batchLength), [])
          for (const { name, size } of found) {
            const [id = '', key = '', ...more] = name.split('.')
            if (!isItemId(id) || !isVariantKey(key) || more.length > 0)
              return yield { kind: 'foreign', path: variantDatabase }
            yield { kind: 'variant', id, size, path: join(variantDatabase, name) }
          }
          last = found.at(-1)?.name
        }
      } catch (error) {
        if (!(error instanceof VariantsDamaged)) throw error
        yield { kind: 'foreign', path: variantDatabase }
      }
    },

    exists: (path) => read(path) !== null,

    async move(path, target) {
      const bytes = read(path)
      if (bytes === null) return false
      await createSyncedFile(files, target, (file) => file.write(bytes))
      withRows((rows) => rows.removeOne(basename(path)), undefined)
      return true
    },
  }
}
