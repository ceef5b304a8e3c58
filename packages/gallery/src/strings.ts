import { batch, signal } from '@preact/signals'
import { en, type Texts } from './strings/en.ts'
import { locale } from './strings/locale.ts'

/** The languages by their own names. */
export const languages = { en: 'English', de: 'Deutsch', es: 'Español' } as const
export type Language = keyof typeof languages

/** Texts in the language that is shown. `load` resolves to a function that shows what was loaded. */
interface Part {
  load(language: Language): Promise<() => void>
}

function createPart<T>(by: Readonly<Record<Language, () => Promise<T>>>, initial: T | null = null) {
  const texts = signal(initial)
  return {
    get texts(): T {
      if (texts.value === null) throw new Error('The texts are not loaded.')
      return texts.value
    },
    async load(language: Language) {
      const loaded = await by[language]()
      return () => {
        texts.value = loaded
      }
    },
  }
}

const base = createPart<Texts>(
  {
    en: async () => en,
    de: async () => (await import('./strings/de.ts')).de,
    es: async () => (await import('./strings/es.ts')).es,
  },
  en,
)

/** Texts that are loaded with the code that uses them. */
const parts = {
  buckets: createPart({
    en: async () => (await import('./strings/buckets/en.ts')).buckets,
    de: async () => (await import('./strings/buckets/de.ts')).buckets,
    es: async () => (await import('./strings/buckets/es.ts')).buckets,
  }),
  deletion: createPart({
    en: async () => (await import('./strings/deletion/en.ts')).deletion,
    de: async () => (await import('./strings/deletion/de.ts')).deletion,
    es: async () => (await import('./strings/deletion/es.ts')).deletion,
  }),
  details: createPart({
    en: async () => (await import('./strings/details/en.ts')).details,
    de: async () => (await import('./strings/details/de.ts')).details,
    es: async () => (await import('./strings/details/es.ts')).details,
  }),
  labels: createPart({
    en: async () => (await import('./strings/labels/en.ts')).labels,
    de: async () => (await import('./strings/labels/de.ts')).labels,
    es: async () => (await import('./strings/labels/es.ts')).labels,
  }),
  links: createPart({
    en: async () => (await import('./strings/links/en.ts')).links,
    de: async () => (await import('./strings/links/de.ts')).links,
    es: async () => (await import('./strings/links/es.ts')).links,
  }),
  selected: createPart({
    en: async () => (await import('./strings/selected/en.ts')).selected,
    de: async () => (await import('./strings/selected/de.ts')).selected,
    es: async () => (await import('./strings/selected/es.ts')).selected,
  }),
  slides: createPart({
    en: async () => (await import('./strings/slides/en.ts')).slides,
    de: async () => (await import('./strings/slides/de.ts')).slides,
    es: async () => (await import('./strings/slides/es.ts')).slides,
  }),
  tokens: createPart({
    en: async () => (await import('./strings/tokens/en.ts')).tokens,
    de: async () => (await import('./strings/tokens/de.ts')).tokens,
    es: async () => (await import('./strings/tokens/es.ts')).tokens,
  }),
  trash: createPart({
    en: async () => (await import('./strings/trash/en.ts')).trash,
    de: async () => (await import('./strings/trash/de.ts')).trash,
    es: async () => (await import('./strings/trash/es.ts')).trash,
  }),
  uploads: createPart({
    en: async () => (await import('./strings/uploads/en.ts')).uploads,
    de: async () => (await import('./strings/uploads/de.ts')).uploads,
    es: async () => (await import('./strings/uploads/es.ts')).uploads,
  }),
  webhooks: createPart({
    en: async () => (await import('./strings/webhooks/en.ts')).webhooks,
    de: async () => (await import('./strings/webhooks/de.ts')).webhooks,
    es: async () => (await import('./strings/webhooks/es.ts')).webhooks,
  }),
}
export type PartName = keyof typeof parts

const sections = {
  ...en,
  get buckets() {
    return parts.buckets.texts
  },
  get deletion() {
    return parts.deletion.texts
  },
  get details() {
    return parts.details.texts
  },
  get labels() {
    return parts.labels.texts
  },
  get links() {
    return parts.links.texts
  },
  get selected() {
    return parts.selected.texts
  },
  get slides() {
    return parts.slides.texts
  },
  get tokens() {
    return parts.tokens.texts
  },
  get trash() {
    return parts.trash.texts
  },
  get uploads() {
    return parts.uploads.texts
  },
  get webhooks() {
    return parts.webhooks.texts
  },
}

/**
 * All texts of the user interface, in the language that was chosen. Components that use a text are drawn again when it changes. Those of
 * `parts` can be read after `loadTexts`.
 */
export const strings = new Proxy(sections, {
  get: (target, section) => Reflect.get(base.texts, section) ?? Reflect.get(target, section),
})

/** The parts that are shown in each language from now on. */
const wanted = new Set<Part>([base])
/** The language that is shown, or is being loaded. */
let chosen: Language = 'en'
let shown: Language = 'en'

async function show(language: Language): Promise<void> {
  const updates = await Promise.all([...wanted].map((part) => part.load(language)))
  // The person chose another language while these texts were loaded.
  if (language !== chosen) return await show(chosen)
  shown = language
  locale.current = language
  batch(() => {
    for (const update of updates) update()
  })
}

/** Loads and shows a language. The former one stays if it cannot be loaded. */
export async function showLanguage(language: Language): Promise<void> {
  chosen = language
  await show(language).catch(() => {
    if (chosen === language) chosen = shown
  })
}

/** Loads texts, also in languages that are chosen later. */
export async function loadTexts(...names: readonly PartName[]): Promise<void> {
  for (const name of names) wanted.add(parts[name])
  await show(chosen)
}

/** The first language of the browser that the page has. */
export const browserLanguage = (preferred: readonly string[]): Language => {
  const known = preferred.map((tag) => tag.toLowerCase().split('-')[0])
  return known.find((tag): tag is Language => tag !== undefined && Object.hasOwn(languages, tag)) ?? 'en'
}
