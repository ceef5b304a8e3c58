import { Choice } from '../components/choice.tsx'
import type { Preferences } from '../preferences.ts'
import { languages, strings } from '../strings.ts'

/** The theme and the language of this browser. `quiet` if their labels are for screen readers only. */
export function DisplaySettings({
  preferences,
  quiet = false,
}: {
  preferences: Preferences
  quiet?: boolean
}) {
  const { theme, language } = preferences
  return (
    <>
      <Choice
        quiet={quiet}
        label={strings.settings.language}
        options={languages}
        value={language.value}
        onChoose={(next) => {
          language.value = next
        }}
      />
      <Choice
        quiet={quiet}
        label={strings.settings.theme}
        options={strings.settings.themes}
        value={theme.value}
        onChoose={(next) => {
          theme.value = next
        }}
      />
    </>
  )
}
