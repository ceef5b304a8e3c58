import type { TrashedMedia } from '@mediabucket/client'
import { useEffect, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { Modal } from '../components/modal.tsx'
import { LoadError, SectionHead } from '../components/section.tsx'
import { formatTime, kindOf } from '../format.ts'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { Placeholder } from '../tiles/thumbnail.tsx'
import { MiddleName } from '../tiles/tile.tsx'

/** The deleted files that can be restored. */
export function TrashView() {
  const { trash, usage } = useGallery()
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  // The ids that the question is about: the list may change before the dialog closes.
  const [asking, setAsking] = useState<readonly string[] | 'all' | null>(null)
  const [busy, setBusy] = useState(false)
  useEffect(() => void trash.reload(), [trash])
  const items = trash.items.value
  const error = trash.error.value
  const days = usage.bucket.value?.trash_days
  const chosen = items?.filter(({ id }) => selected.has(id)).map(({ id }) => id) ?? []

  /** `ids`: the items that the action removes from the list. Others may be selected until it ends. */
  async function run(ids: readonly string[], action: () => Promise<boolean>): Promise<void> {
    setBusy(true)
    if (await action()) setSelected((now) => new Set([...now].filter((id) => !ids.includes(id))))
    setBusy(false)
    setAsking(null)
  }

  return (
    <>
      <SectionHead title={strings.sections.trash} about={days === undefined ? '' : strings.trash.about(days)}>
        {items !== null && items.length > 0 && (
          <button type="button" class="button small bad" disabled={busy} onClick={() => setAsking('all')}>
            {strings.trash.empty}
          </button>
        )}
      </SectionHead>
      <p class="off-screen" role="status">
        {items === null && error === null && strings.trash.loading}
      </p>
      {error !== null ? (
        <LoadError title={strings.trash.failedToLoad} reason={error} onRetry={() => void trash.reload()} />
      ) : items === null ? null : items.length === 0 && !trash.hasMore.value ? (
        <div class="state">
          <Icon name="trash" size={40} />
          <h2>{strings.trash.none}</h2>
        </div>
      ) : (
        <>
          <div class="trash-tools">
            <label class="trash-all">
              <input
                type="checkbox"
                checked={chosen.length === items.length}
                onChange={({ currentTarget }) =>
                  setSelected(new Set(currentTarget.checked ? items.map(({ id }) => id) : []))
                }
              />
              {chosen.length > 0 ? strings.selection.count(chosen.length) : strings.trash.all}
            </label>
            <button
              type="button"
              class="button"
              disabled={chosen.length === 0 || busy}
              title={strings.trash.restore}
              onClick={() => void run(chosen, () => trash.restore(chosen))}
            >
              <Icon name="retry" size={18} />
              <span>{strings.trash.restore}</span>
            </button>
            <button
              type="button"
              class="button bad"
              disabled={chosen.length === 0 || busy}
              title={strings.trash.delete}
              onClick={() => setAsking(chosen)}
            >
              <Icon name="trash" size={18} />
              <span>{strings.trash.delete}</span>
            </button>
          </div>
          <TrashList items={items} selected={selected} onSelect={setSelected} />
          {trash.hasMore.value && (
            <button type="button" class="button" onClick={() => void trash.loadMore()}>
              {strings.trash.more}
            </button>
          )}
        </>
      )}
      {asking !== null && (
        <Modal class="dialog" labelledBy="trash-question" onCancel={() => setAsking(null)}>
          <h2 id="trash-question">
            {asking === 'all' ? strings.trash.confirmEmpty : strings.trash.confirmDelete(asking.length)}
          </h2>
          <p>{strings.trash.forGood}</p>
          <div class="dialog-actions">
            <button type="button" class="button" disabled={busy} onClick={() => setAsking(null)}>
              {strings.cancel}
            </button>
            <button
              type="button"
              class="button danger"
              aria-disabled={busy}
              onClick={() =>
                !busy &&
                void (asking === 'all'
                  ? run([...selected], trash.empty)
                  : run(asking, () => trash.deleteForGood(asking)))
              }
            >
              {asking === 'all' ? strings.trash.empty : strings.trash.delete}
            </button>
          </div>
        </Modal>
      )}
    </>
  )
}

interface TrashListProps {
  readonly items: readonly TrashedMedia[]
  readonly selected: ReadonlySet<string>
  readonly onSelect: (selected: ReadonlySet<string>) => void
}

/** Deleted files with checkboxes, last deleted first. */
export function TrashList({ items, selected, onSelect }: TrashListProps) {
  const toggle = (id: string) =>
    onSelect(new Set(selected.has(id) ? [...selected].filter((other) => other !== id) : [...selected, id]))
  return (
    <ul id="files" class="trash-list" tabIndex={-1} aria-label={strings.trash.list}>
      {items.map(({ id, filename, content_type, deleted_at, expires_at, thumbhash }) => (
        <li key={id} data-id={id}>
          <label>
            <input type="checkbox" checked={selected.has(id)} onChange={() => toggle(id)} />
            <span class="trash-picture">
              <Icon name={kindOf(content_type)} />
              {thumbhash && <Placeholder thumbHash={thumbhash} loaded={false} />}
            </span>
            <MiddleName class="trash-name" name={filename ?? strings.unnamed} />
            <span class="trash-times">
              <time dateTime={deleted_at}>{strings.trash.deletedAt(formatTime(deleted_at))}</time>
              <span>{strings.trash.left(daysUntil(expires_at))}</span>
            </span>
          </label>
        </li>
      ))}
    </ul>
  )
}

const daysUntil = (time: string): number =>
  Math.max(0, Math.ceil((Date.parse(time) - Date.now()) / (24 * 3_600_000)))
