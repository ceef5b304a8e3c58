import { Modal } from '../components/modal.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'

/** Asks for confirmation before files are deleted, then shows the progress. */
export function DeletionQuestion() {
  const { deletion, mediaCache } = useGallery()
  const ids = deletion.pending.value
  if (ids === null) return null
  const processed = deletion.processed.value
  if (deletion.toTrash.value) return <MovingToTrash count={ids.length} processed={processed ?? 0} />
  const busy = processed !== null
  const [first = ''] = ids
  const name = mediaCache.get(first).value?.filename ?? strings.unnamed
  return (
    <Modal class="dialog" labelledBy="deletion-title" onCancel={deletion.cancel}>
      <h2 id="deletion-title">{strings.deletion.title(ids.length)}</h2>
      <p class="wrap">{ids.length === 1 ? strings.deletion.one(name) : strings.deletion.many}</p>
      {busy && (
        <p role="status">
          {strings.deletion.busy(Math.min(processed, ids.length - 1), ids.length)}
          <progress
            class="progress"
            aria-label={strings.deletion.title(ids.length)}
            max={ids.length}
            value={processed}
          />
        </p>
      )}
      <div class="dialog-actions">
        <button type="button" class="button" disabled={busy} onClick={deletion.cancel}>
          {strings.cancel}
        </button>
        <button
          type="button"
          class="button danger"
          aria-disabled={busy}
          onClick={() => !busy && void deletion.confirm()}
        >
          {strings.deletion.confirm(ids.length)}
        </button>
      </div>
    </Modal>
  )
}

/** The progress while more files are moved to the trash than one request moves. */
function MovingToTrash({ count, processed }: { count: number; processed: number }) {
  const title = strings.deletion.moving(count)
  return (
    <Modal class="dialog" labelledBy="moving-title" onCancel={() => undefined}>
      <h2 id="moving-title">{title}</h2>
      <progress class="progress" aria-label={title} max={count} value={processed} />
    </Modal>
  )
}
