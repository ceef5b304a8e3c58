import { Icon } from '../components/icon.tsx'
import { IconButton } from '../components/icon-button.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

/** The actions for the selected items. */
export function SelectionBar() {
  const { selection, listing, router, deletion, copyLinks, canDelete } = useGallery()
  const count = selection.count.value
  const ids = () => [...selection.ids.value]
  return (
    <section class="selection-place" aria-label={strings.selection.label}>
      <p class="off-screen" role="status">
        {count > 0 && strings.selection.count(count)}
      </p>
      {count > 0 && (
        <div class="selection-bar">
          <IconButton icon="close" label={strings.selection.clear} onClick={selection.clear} />
          <strong>{strings.selection.count(count)}</strong>
          {router.page.value !== null && (
            <button type="button" class="button quiet" onClick={() => selection.add(listing.ids.value)}>
              <Icon name="check" />
              <span>{strings.selection.allOnPage}</span>
            </button>
          )}
          <button type="button" class="button quiet" onClick={() => void copyLinks(ids())}>
            <Icon name="link" />
            <span>{strings.selection.copy}</span>
          </button>
          {canDelete && (
            <button type="button" class="button quiet bad" onClick={() => deletion.request(ids())}>
              <Icon name="trash" />
              <span>{strings.selection.delete}</span>
            </button>
          )}
        </div>
      )}
    </section>
  )
}
