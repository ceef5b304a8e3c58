import type { Media } from '@mediabucket/client'
import { isUnreachable } from '../../service/connection.ts'
import { Refusal, refusalMessage } from './refusal.ts'
import type { SendOptions } from './send-options.ts'
import type { ServerWait } from './server-wait.ts'
import type { UploadEntry, UploadList } from './upload-list.ts'

/** Changes the state of entries according to the outcome of their request. */
export interface Outcomes {
  stored(entries: readonly UploadEntry[], items: readonly Stored[]): void
  /** The server refused this file. */
  refused(entry: UploadEntry, refusal: Refusal): void
  failed(entry: UploadEntry, reason: string): void
  /** Whether the bucket may have room for the file. If the server has said that it has none, the entry fails. */
  hasRoom(entry: UploadEntry): boolean
  /** Forgets that the bucket is full, because files may have been deleted. */
  forgetFullBucket(): void
  /** Waits and resolves with null if a retry may succeed, otherwise with the refusal. `error` is null if there was no response. */
  waitForRetry(error: unknown, tries: number): Promise<Refusal | null>
}

type Stored = Pick<Media, 'id'>

export function createOutcomes(list: UploadList, server: ServerWait, options: SendOptions): Outcomes {
  /** The reason for which the bucket is full, and the size from which files do not fit. Bytes. */
  let full: { readonly minSize: number; readonly reason: string } | null = null

  function failed(entry: UploadEntry, reason: string): void {
    if (!list.get(entry.id)) return
    entry.reason = reason
    list.update(entry, { sent: 0 })
    list.move(entry, 'failed')
  }

  function hasRoom(entry: UploadEntry): boolean {
    if (full === null || entry.size < full.minSize) return true
    failed(entry, full.reason)
    return false
  }

  return {
    failed,
    hasRoom,
    forgetFullBucket() {
      full = null
    },
    stored(entries, items) {
      for (const [index, entry] of entries.entries()) {
        const item = items[index]
        if (item) entry.itemId = item.id
        if (list.get(entry.id)) list.move(entry, 'done')
        entry.file = null
      }
      options.onStored(entries)
    },
    refused(entry, { status, body }) {
      const reason = refusalMessage(status, body)
      failed(entry, reason)
      options.onRefused(status)
      if (status !== 507) return
      // Files of at least this size do not fit either; if the number of files is the limit, no file fits.
      full = { minSize: /"max_items"/.test(body) ? 0 : entry.size, reason }
      for (const other of [...list.in('waiting')]) hasRoom(other)
    },
    async waitForRetry(error, tries) {
      if (error === null || isUnreachable(error) || (error instanceof Refusal && error.isGateway)) {
        options.onUnreachable()
        const back = server.untilBack()
        options.onChange()
        await back
        return null
      }
      if (!(error instanceof Refusal)) return new Refusal(0, '', null)
      const delay = error.delayAfter(tries)
      if (delay === null) return error
      await server.delay(delay)
      return null
    },
  }
}
