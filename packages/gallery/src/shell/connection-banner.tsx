import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

/** Shown while the server does not respond. */
export function ConnectionBanner() {
  const { connection } = useGallery()
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
