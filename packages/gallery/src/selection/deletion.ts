import type { Client } from '@mediabucket/client'
import { maxIds } from '@mediabucket/client/rules'
import { type ReadonlySignal, signal } from '@preact/signals'
import { restoreFocus } from '../components/modal.tsx'
import type { Router } from '../router.ts'
import type { BucketUsage } from '../service/bucket.ts'
import { type Connection, errorMessage, isUnauthorized } from '../service/connection.ts'
import type { MediaCache } from '../service/media-cache.ts'
import type { Notices } from '../shell/notices.ts'
import { strings } from '../strings.ts'
import type { Timeline } from '../timeline/timeline.ts'
import type { Trash } from '../trash/trash.ts'
import type { Selection } from './selection.ts'

/** Deletes items: after the person has confirmed it, or at once if they are moved to the trash. */
export interface Deletion {
  /** The ids that wait for confirmation or are being deleted; null if the dialog is closed. */
  readonly pending: ReadonlySignal<readonly string[] | null>
  /** How many of them have been processed; null before the confirmation. */
  readonly processed: ReadonlySignal<number | null>
  /** Whether the pending items are being moved to the trash. */
  readonly toTrash: ReadonlySignal<boolean>
  /** Moves the items to the trash, or opens the dialog that asks for confirmation if the bucket has none. */
  request(ids: readonly string[]): Promise<void>
  cancel(): void
  confirm(): Promise<void>
}

/** Items of one request. */
export const batchSize = maxIds

export interface DeletionResult {
  readonly deleted: readonly string[]
  /** Whether they were moved to the trash. */
  readonly toTrash: boolean
  readonly failed: number
  /** Of the last failure; empty if there was none. */
  readonly reason: string
}

export function createDeletion(
  client: Client,
  connection: Connection,
  hasTrash: () => Promise<boolean>,
  onFinished: (result: DeletionResult) => Promise<void>,
): Deletion {
  const pending = signal<readonly string[] | null>(null)
  const processed = signal<number | null>(null)
  const toTrash = signal(false)
  let checking = false

  /** Resolves with the error, or with null if the items no longer exist. */
  async function deleteItems(ids: readonly string[]): Promise<unknown> {
    try {
      await connection.watch(() => client.deleteMany(ids))
      return null
    } catch (error) {
      return error
    }
  }

  async function confirm(): Promise<void> {
    const ids = pending.value ?? []
    const deleted: string[] = []
    let reason = ''
    processed.value = 0
    for (let start = 0; start < ids.length; start += batchSize) {
      const batch = ids.slice(start, start + batchSize)
      const error = await deleteItems(batch)
      if (isUnauthorized(error)) break
      if (error === null) deleted.push(...batch)
      else reason = errorMessage(error)
      processed.value += batch.length
      if (connection.lost.value) break
    }
    await onFinished({ deleted, toTrash: toTrash.value, failed: ids.length - deleted.length, reason })
    processed.value = null
    pending.value = null
  }

  return {
    pending,
    processed,
    toTrash,
    async request(ids) {
      if (ids.length === 0 || processed.value !== null || checking) return
      checking = true
      // The setting may have changed since the page was loaded.
      toTrash.value = await hasTrash()
      checking = false
      pending.value = ids
      if (toTrash.value) await confirm()
    },
    cancel() {
      if (processed.value === null) pending.value = null
    },
    confirm,
  }
}

interface Shown {
  readonly router: Router
  readonly timeline: Timeline
  readonly mediaCache: MediaCache
  readonly selection: Selection
  readonly notices: Notices
  readonly trash: Trash
  readonly usage: Pick<BucketUsage, 'refresh'>
}

/** Shows the timeline without the deleted items, and what was deleted. Items in the trash can be restored from the notice. */
export async function showDeletion(
  { deleted, toTrash, failed, reason }: DeletionResult,
  { router, timeline, mediaCache, selection, notices, trash, usage }: Shown,
): Promise<void> {
  selection.remove(deleted)
  for (const id of deleted) mediaCache.forget(id)
  const open = router.item.value
  const position = open === null ? -1 : timeline.ids.value.indexOf(open)
  timeline.remove(deleted)
  void usage.refresh()
  if (open !== null && deleted.includes(open) && router.item.value === open) {
    // Open the item that moved to the position of the deleted one, if that was shown.
    const ids = position < 0 ? [] : timeline.ids.value
    router.show(ids[Math.min(position, ids.length - 1)] ?? null)
  }
  const undo = async () => {
    const stillOpen = router.item.value !== null
    if ((await trash.restore(deleted)) && stillOpen && open !== null && deleted.includes(open))
      router.show(open)
  }
  if (deleted.length > 0 && toTrash) {
    const action = { label: strings.deleted.undo, run: () => void undo() }
    notices.show(strings.deleted.trashed(deleted.length), { action })
    requestAnimationFrame(() => setTimeout(restoreFocus))
  } else if (deleted.length > 0) notices.show(strings.deleted.done(deleted.length))
  if (failed > 0) notices.show(strings.deleted.failed(failed, reason), { tone: 'bad' })
}
