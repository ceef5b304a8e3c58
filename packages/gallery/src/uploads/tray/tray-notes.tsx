import { IconButton } from '../../components/icon-button.tsx'
import { useGallery } from '../../gallery.ts'
import { strings } from '../../strings.ts'

/** The tooltip of a note lists at most this many paths. */
const maxPaths = 20

/** Notes about files that were not added. */
export function TrayNotes() {
  const { uploads } = useGallery()
  const notes = uploads.notes.value
  if (notes.length === 0) return null
  return (
    <ul class="tray-notes">
      {notes.map(({ id, text, paths, isBad, action }) => (
        <li key={id} class={isBad ? 'tray-note bad' : 'tray-note'}>
          <span title={paths.slice(0, maxPaths).join('\n')}>{text}</span>
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
