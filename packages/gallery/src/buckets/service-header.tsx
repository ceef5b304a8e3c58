import { Icon, Logo } from '../components/icon.tsx'
import { useService } from '../gallery-context.ts'
import { DisplaySettings } from '../preferences.tsx'
import { strings } from '../strings.ts'

export function ServiceHeader() {
  const { preferences, signOut } = useService()
  return (
    <header class="header">
      <p class="wordmark">
        <Logo />
        <span>{strings.product}</span>
      </p>
      <div class="usage" />
      <div class="header-actions">
        <button
          type="button"
          class="icon-button"
          popovertarget="settings"
          aria-label={strings.settings.label}
          title={strings.settings.label}
        >
          <Icon name="settings" />
        </button>
        <div id="settings" class="menu settings" popover="auto">
          <DisplaySettings preferences={preferences} />
        </div>
        <button
          type="button"
          class="button sign-out"
          aria-label={strings.header.signOut}
          title={strings.header.signOut}
          onClick={signOut}
        >
          <Icon name="exit" />
          <span class="sign-out-label">{strings.header.signOut}</span>
        </button>
      </div>
    </header>
  )
}
