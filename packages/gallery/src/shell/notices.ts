import { type ReadonlySignal, signal } from '@preact/signals'

interface Notice {
  readonly id: number
  readonly text: string
  readonly tone: 'plain' | 'bad'
  readonly action: NoticeAction | null
}

/** What a person can do about a notice, once. */
interface NoticeAction {
  readonly label: string
  run(): void
}

/** Short messages that disappear after a while, and messages for screen readers only. */
export interface Notices {
  readonly visible: ReadonlySignal<readonly Notice[]>
  /** The text of the live region that screen readers announce. */
  readonly announcement: ReadonlySignal<string>
  /** Shows and announces a message. A message with the tone `bad` stays until it is dismissed. */
  show(
    text: string,
    options?: { readonly tone?: Notice['tone']; readonly action?: NoticeAction | null },
  ): void
  /** Runs the action of a notice and dismisses it. */
  act(notice: Notice): void
  /** Runs the action of the last notice that has one; returns false if there is none. */
  actOnLast(): boolean
  /** Announces a text without showing it. */
  announce(text: string): void
  dismiss(id: number): void
}

/** Milliseconds. */
const lifetime = 6000
/** Of a notice with an action. Milliseconds. */
const actionLifetime = 20_000

/** The oldest disappears when there are more. */
const maxVisible = 3

export function createNotices(): Notices {
  const visible = signal<readonly Notice[]>([])
  const announcement = signal('')
  let last = 0
  const dismiss = (id: number) => {
    visible.value = visible.value.filter((notice) => notice.id !== id)
  }
  // Screen readers announce a repeated text only if it differs.
  const announce = (text: string) => {
    announcement.value = announcement.value === text ? `${text}\u00a0` : text
  }
  const act = ({ id, action }: Notice) => {
    dismiss(id)
    action?.run()
  }
  return {
    visible,
    announcement,
    announce,
    dismiss,
    act,
    actOnLast() {
      const notice = visible.value.findLast(({ action }) => action !== null)
      if (notice) act(notice)
      return notice !== undefined
    },
    show(text, { tone = 'plain', action = null } = {}) {
      last += 1
      const id = last
      const others = visible.value.filter((notice) => notice.text !== text || notice.action !== null)
      visible.value = [...others.slice(1 - maxVisible), { id, text, tone, action }]
      announce(text)
      if (tone === 'plain') setTimeout(dismiss, action === null ? lifetime : actionLifetime, id)
    },
  }
}
