import { type ListOrder, listOrders } from '@mediabucket/client/rules'
import { effect, type Signal, signal } from '@preact/signals'
import { Choice } from './components/controls.tsx'
import { type LinkNames, serviceUrl } from './service/urls.ts'
import { browserLanguage, type Language, languages, strings } from './strings.ts'

/** What a person chose for this browser. */
export interface Preferences {
  readonly order: Signal<ListOrder>
  readonly layout: Signal<'grid' | 'list'>
  readonly names: Signal<LinkNames>
  readonly theme: Signal<'system' | 'light' | 'dark'>
  readonly language: Signal<Language>
}

/** The first choice is the default. Browsers that store nothing use it on every visit. */
export function createPreferences(): Preferences {
  const key = `mediabucket.preferences ${serviceUrl().pathname}`
  const stored = read(key)
  const choose = <T extends string>(name: string, of: readonly [T, ...T[]]): Signal<T> =>
    signal(of.find((choice) => choice === stored.get(name)) ?? of[0])
  const preferences: Preferences = {
    order: choose('order', ['newest', ...listOrders]),
    layout: choose('layout', ['grid', 'list']),
    names: choose('names', ['service', 'on', 'off']),
    theme: choose('theme', ['system', 'light', 'dark']),
    language: choose('language', [browserLanguage(navigator.languages), 'en', 'de', 'es']),
  }
  let before = ''
  effect(() => {
    const values = Object.entries(preferences).map(([name, { value }]): [string, string] => [name, value])
    const now = `${new URLSearchParams(values)}`
    try {
      // Nothing is stored before a person chooses something.
      if (before !== '' && before !== now) localStorage.setItem(key, now)
    } catch {
      // The browser stores nothing.
    }
    before = now
  })
  return preferences
}

function read(key: string): URLSearchParams {
  try {
    return new URLSearchParams(localStorage.getItem(key) ?? '')
  } catch {
    return new URLSearchParams()
  }
}

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
