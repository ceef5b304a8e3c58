import { IconButton } from '../components/icon-button.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

/** The visible notices. `NoticeAnnouncer` announces them, because a live region must exist before its text changes. */
export function NoticeList() {
  const { notices } = useGallery()
  return (
    <div class="notices">
      {notices.visible.value.map((notice) => (
        <div key={notice.id} class={`notice ${notice.tone}`}>
          <span>{notice.text}</span>
          {notice.action && (
            <button type="button" class="button quiet small" onClick={() => notices.act(notice)}>
              {notice.action.label}
            </button>
          )}
          <IconButton icon="close" label={strings.dismiss} onClick={() => notices.dismiss(notice.id)} />
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
