import { effect, type Signal, signal } from '@preact/signals'
import { serviceUrl } from './service/urls.ts'

/** What a person chose for this browser. */
export interface Preferences {
  readonly order: Signal<'newest' | 'oldest'>
  readonly layout: Signal<'grid' | 'list'>
}

const choices = { order: ['newest', 'oldest'], layout: ['grid', 'list'] } as const

/** The first choice is the default. Browsers that store nothing use it on every visit. */
export function createPreferences(): Preferences {
  const key = `mediabucket.preferences ${serviceUrl().pathname}`
  const stored = read(key)
  const choose = <T extends string>(name: string, of: readonly [T, ...T[]]): Signal<T> =>
    signal(of.find((choice) => choice === stored.get(name)) ?? of[0])
  const preferences = { order: choose('order', choices.order), layout: choose('layout', choices.layout) }
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
