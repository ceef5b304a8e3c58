import type { Media } from '@mediabucket/client'
import { isUnreachable } from '../../service/errors.ts'
import type { UploadEntry } from '../upload-entry.ts'
import { Refusal, refusal } from './refusal.ts'
import type { SendOptions } from './send-options.ts'
import type { ServerWait } from './server-wait.ts'
import type { UploadList } from './upload-list.ts'

/** What becomes of entries after their request. */
export interface Outcomes {
  stored(entries: readonly UploadEntry[], items: readonly Stored[]): void
  /** The service refused this file. */
  refused(entry: UploadEntry, refusal: Refusal): void
  failed(entry: UploadEntry, reason: string): void
  /** Whether the bucket may have room for the file; where the service said no, the entry has failed. */
  hasRoom(entry: UploadEntry): boolean
  /** Room may have been made. */
  forgetFullBucket(): void
  /** Waits where another try may succeed, and resolves with null; otherwise with why not. `null`: no response. */
  waitForRetry(error: unknown, tries: number): Promise<Refusal | null>
}

type Stored = Pick<Media, 'id'> & { readonly url: string | null }

export function createOutcomes(list: UploadList, server: ServerWait, options: SendOptions): Outcomes {
  /** What the service said of the last file that found no room in the bucket. */
  let full: { readonly from: number; readonly reason: string } | null = null

  function failed(entry: UploadEntry, reason: string): void {
    if (!list.get(entry.id)) return
    entry.reason = reason
    list.update(entry, { sent: 0 })
    list.move(entry, 'failed')
  }

  function hasRoom(entry: UploadEntry): boolean {
    if (full === null || entry.size < full.from) return true
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
        if (item) entry.item = { id: item.id, url: item.url }
        if (list.get(entry.id)) list.move(entry, 'done')
        entry.file = null
      }
      options.onStored(entries)
    },
    refused(entry, { status, body }) {
      const reason = refusal(status, body)
      failed(entry, reason)
      options.onRefused(status)
      if (status !== 507) return
      // Where a file has no room, one at least as large has none either; where the count is the limit, no file has.
      full = { from: /"max_items"/.test(body) ? 0 : entry.size, reason }
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
