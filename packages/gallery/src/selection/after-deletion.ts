import { restoreFocus } from '../components/modal.tsx'
import type { Listing } from '../listing/listing.ts'
import type { MediaCache } from '../listing/media-cache.ts'
import type { Router } from '../routing/router.ts'
import type { Notices } from '../shell/notices.ts'
import { strings } from '../strings.ts'
import type { Timeline } from '../timeline/timeline.ts'
import type { Trash } from '../trash/trash.ts'
import type { DeletionResult } from './deletion.ts'
import type { Selection } from './selection.ts'

interface Shown {
  readonly router: Router
  readonly listing: Listing
  readonly timeline: Timeline
  readonly mediaCache: MediaCache
  readonly selection: Selection
  readonly notices: Notices
  readonly trash: Trash
  reload(): Promise<void>
  refreshUsage(): Promise<void>
}

/** Shows the page without the deleted items, and what was deleted. Items in the trash can be restored from the notice. */
export async function showDeletion(
  { deleted, toTrash, failed, reason }: DeletionResult,
  { router, listing, timeline, mediaCache, selection, notices, trash, reload, refreshUsage }: Shown,
): Promise<void> {
  selection.remove(deleted)
  for (const id of deleted) mediaCache.forget(id)
  const inTimeline = router.page.value === null
  const shown = inTimeline ? timeline.ids : listing.ids
  const open = router.item.value
  const position = open === null ? -1 : shown.value.indexOf(open)
  if (inTimeline) {
    timeline.remove(deleted)
    void refreshUsage()
  } else await reload()
  const last = listing.page.value?.last_page ?? 1
  if (router.page.value !== null && router.page.value > last) router.replace({ page: last, item: null })
  else if (open !== null && deleted.includes(open) && router.item.value === open) {
    // Open the item that moved to the position of the deleted one, if that was shown.
    const ids = position < 0 ? [] : shown.value
    router.show(ids[Math.min(position, ids.length - 1)] ?? null)
  }
  const undo = async () => {
    const stillOpen = router.item.value !== null
    if ((await trash.restore(deleted)) && stillOpen && open !== null && deleted.includes(open))
      router.show(open)
  }
  if (deleted.length > 0 && toTrash) {
    const action = { label: strings.deletion.undo, run: () => void undo() }
    notices.show(strings.deletion.trashed(deleted.length), { action })
    requestAnimationFrame(() => setTimeout(restoreFocus))
  } else if (deleted.length > 0) notices.show(strings.deletion.done(deleted.length))
  if (failed > 0) notices.show(strings.deletion.failed(failed, reason), { tone: 'bad' })
}
