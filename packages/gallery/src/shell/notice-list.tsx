import { IconButton } from '../components/icon-button.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

/** The notices that are up; they are spoken by `NoticeAnnouncer`, which is always there to be heard. */
export function NoticeList() {
  const { notices } = useGallery()
  return (
    <div class="notices">
      {notices.shown.value.map(({ id, text, tone, action }) => (
        <div key={id} class={`notice ${tone}`}>
          <span>{text}</span>
          {action && (
            <button
              type="button"
              class="button small quiet"
              onClick={() => {
                action.run()
                notices.dismiss(id)
              }}
            >
              {action.label}
            </button>
          )}
          <IconButton icon="close" label={strings.dismiss} onClick={() => notices.dismiss(id)} />
        </div>
      ))}
    </div>
  )
}

export function NoticeAnnouncer() {
  const { notices } = useGallery()
  return (
    <p class="off-screen" role="status">
      {notices.spoken.value}
    </p>
  )
}
