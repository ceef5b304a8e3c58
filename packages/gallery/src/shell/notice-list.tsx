import { IconButton } from '../components/icon-button.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

/** The visible notices. `NoticeAnnouncer` announces them, because a live region must exist before its text changes. */
export function NoticeList() {
  const { notices } = useGallery()
  return (
    <div class="notices">
      {notices.visible.value.map(({ id, text, tone }) => (
        <div key={id} class={`notice ${tone}`}>
          <span>{text}</span>
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
      {notices.announcement.value}
    </p>
  )
}
