import { useService } from '../gallery-context.ts'
import { DisplaySettings } from '../preferences.tsx'
import { SettingsButton, SignOutButton, Wordmark } from '../shell/header.tsx'

export function ServiceHeader() {
  const { preferences, signOut } = useService()
  return (
    <header class="header">
      <Wordmark />
      <div class="usage" />
      <div class="header-actions">
        <SettingsButton />
        <div id="settings" class="menu settings" popover="auto">
          <DisplaySettings preferences={preferences} />
        </div>
        <SignOutButton onClick={signOut} />
      </div>
    </header>
  )
}
