import { Choice } from '../components/choice.tsx'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery.ts'
import { languages, strings } from '../strings.ts'

/** A button that opens the settings of this browser. */
export function SettingsMenu() {
  const { theme, language } = useGallery().preferences
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
      <div id="settings" class="menu settings" popover="auto">
        <Choice
          label={strings.settings.theme}
          options={strings.settings.themes}
          value={theme.value}
          onChoose={(next) => {
            theme.value = next
          }}
        />
        <Choice
          label={strings.settings.language}
          options={languages}
          value={language.value}
          onChoose={(next) => {
            language.value = next
          }}
        />
      </div>
    </>
  )
}
