import { useRef } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { formatCount } from '../format/count.ts'
import { useGallery } from '../gallery.ts'
import { tokensHash, trashHash } from '../routing/hash-route.ts'
import { strings } from '../strings.ts'
import { DisplaySettings } from './display-settings.tsx'

/** A button that opens the settings of this browser. */
export function SettingsMenu() {
  const { preferences, usage, canDelete, canManageTokens } = useGallery()
  const { trash_days = 0, trash_items = 0 } = usage.bucket.value ?? {}
  const menu = useRef<HTMLDivElement>(null)
  return (
    <>
      <button
        type="button"
        class="icon-button"
        popovertarget="settings"
        aria-label={strings.settings.label}
        title={strings.settings.label}
      >
        <Icon name="settings" />
      </button>
      <div ref={menu} id="settings" class="menu settings" popover="auto">
        <DisplaySettings preferences={preferences} />
        {canManageTokens && (
          <a class="button" href={tokensHash} onClick={() => menu.current?.hidePopover()}>
            <Icon name="key" />
            {strings.tokens.title}
          </a>
        )}
        {canDelete && (trash_days > 0 || trash_items > 0) && (
          <a class="button" href={trashHash} onClick={() => menu.current?.hidePopover()}>
            <Icon name="trash" />
            {strings.trash.title}
            <span class="muted">{formatCount(trash_items)}</span>
          </a>
        )}
      </div>
    </>
  )
}
