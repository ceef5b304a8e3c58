import type { TrashedMedia } from '@mediabucket/client'
import { Icon } from '../components/icon.tsx'
import { MiddleName } from '../components/middle-name.tsx'
import { formatTime } from '../format/date.ts'
import { kindOf } from '../format/kind.ts'
import { Placeholder } from '../listing/placeholder.tsx'
import { strings } from '../strings.ts'

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
