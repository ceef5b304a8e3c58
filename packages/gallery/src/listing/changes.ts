import type { Client } from '@mediabucket/client'
import type { Connection } from '../service/connection.ts'

/** Notices when the bucket changed. An unchanged bucket costs one conditional request (docs/interface.md, L16). */
export interface Changes {
  /** Calls `show` if the bucket changed since it last resolved to true; resolves to what it resolves to, or to false. */
  show(show: () => Promise<boolean>): Promise<boolean>
}

export function createChanges(client: Client, connection: Connection): Changes {
  let etag: string | null = null
  return {
    async show(show) {
      try {
        const changed = await connection.watch(() => client.listPageUnless(etag, 1))
        if (changed === null || !(await show())) return false
        etag = changed.etag
        return true
      } catch {
        // `watch` has handled lost connections and invalid tokens.
        return false
      }
    },
  }
}
