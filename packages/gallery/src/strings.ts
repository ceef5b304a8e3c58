import { signal } from '@preact/signals'
import { en, type Texts } from './strings/en.ts'
import { locale } from './strings/locale.ts'

/** The languages by their own names. */
export const languages = { en: 'English', de: 'Deutsch', es: 'Español' } as const
export type Language = keyof typeof languages

const texts = signal<Texts>(en)

/** All texts of the user interface, in the language that was chosen. Components that use a text are drawn again when it changes. */
export const strings: Texts = new Proxy(en, { get: (_, section) => Reflect.get(texts.value, section) })

const load: Readonly<Record<Language, () => Promise<Texts>>> = {
  en: async () => en,
  de: async () => (await import('./strings/de.ts')).de,
  es: async () => (await import('./strings/es.ts')).es,
}

/** Loads and shows a language. The former one stays if it cannot be loaded. */
export async function showLanguage(language: Language): Promise<void> {
  const loaded = await load[language]().catch(() => null)
  if (loaded === null) return
  locale.current = language
  texts.value = loaded
}

/** The first language of the browser that the page has. */
export const browserLanguage = (preferred: readonly string[]): Language => {
  const known = preferred.map((tag) => tag.toLowerCase().split('-')[0])
  return known.find((tag): tag is Language => tag !== undefined && Object.hasOwn(languages, tag)) ?? 'en'
}
