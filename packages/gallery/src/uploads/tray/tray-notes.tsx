import { IconButton } from '../../components/icon-button.tsx'
import { useGallery } from '../../gallery.ts'
import { strings } from '../../strings.ts'

/** Paths that are listed for those who point at a note. */
const mostPaths = 20

/** What was left out. */
export function TrayNotes() {
  const { uploads } = useGallery()
  const notes = uploads.notes.value
  if (notes.length === 0) return null
  return (
    <ul class="tray-notes">
      {notes.map(({ id, text, paths, isBad, action }) => (
        <li key={id} class={isBad ? 'tray-note bad' : 'tray-note'}>
          <span title={paths.slice(0, mostPaths).join('\n')}>{text}</span>
          {action && (
            <button
              type="button"
              class="button small"
              onClick={() => {
                action.run()
                uploads.dismiss(id)
              }}
            >
              {action.label}
            </button>
          )}
          <IconButton icon="close" label={strings.dismiss} onClick={() => uploads.dismiss(id)} />
        </li>
      ))}
    </ul>
  )
}
