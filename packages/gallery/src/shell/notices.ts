import { type ReadonlySignal, signal } from '@preact/signals'

interface Notice {
  readonly id: number
  readonly text: string
  readonly tone: 'plain' | 'bad'
  readonly action?: { readonly label: string; readonly run: () => void } | undefined
}

/** What is told in passing: short lines that go by themselves, and words for screen readers alone. */
export interface Notices {
  readonly shown: ReadonlySignal<readonly Notice[]>
  /** What screen readers say next. */
  readonly spoken: ReadonlySignal<string>
  tell(text: string, options?: Partial<Pick<Notice, 'tone' | 'action'>>): void
  say(text: string): void
  dismiss(id: number): void
}

/** Milliseconds; what asks for a decision stays longer. */
const lifetime = 6000
const lifetimeWithAction = 15_000

export function createNotices(): Notices {
  const shown = signal<readonly Notice[]>([])
  const spoken = signal('')
  let last = 0
  const dismiss = (id: number) => {
    shown.value = shown.value.filter((notice) => notice.id !== id)
  }
  // The same words twice are a change only if something differs.
  const say = (text: string) => {
    spoken.value = spoken.value === text ? `${text}\u00a0` : text
  }
  return {
    shown,
    spoken,
    say,
    dismiss,
    tell(text, { tone = 'plain', action } = {}) {
      last += 1
      const id = last
      const others = shown.value.filter((notice) => notice.text !== text)
      shown.value = [...others.slice(-2), { id, text, tone, action }]
      say(text)
      if (tone === 'plain') setTimeout(dismiss, action ? lifetimeWithAction : lifetime, id)
    },
  }
}
