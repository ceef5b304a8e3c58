import { IconButton } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { usePage } from '../gallery-context.ts'
import { strings } from '../strings.ts'

/** The visible notices. `NoticeAnnouncer` announces them, because a live region must exist before its text changes. */
export function NoticeList() {
  const { notices } = usePage()
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
  const { notices } = usePage()
  return (
    <p class="off-screen" role="status">
      {notices.announcement.value}
    </p>
  )
}

/** Shown while the server does not respond. */
export function ConnectionBanner() {
  const { connection } = usePage()
  return (
    <div class="banner-place" role="status">
      {connection.lost.value && (
        <div class="banner">
          <Icon name="unplugged" />
          <span>
            <strong>{navigator.onLine ? strings.connection.lost : strings.connection.offline}</strong>{' '}
            {strings.connection.retrying}
          </span>
          <button type="button" class="button small" onClick={connection.retryNow}>
            {strings.connection.retryNow}
          </button>
        </div>
      )}
    </div>
  )
}
