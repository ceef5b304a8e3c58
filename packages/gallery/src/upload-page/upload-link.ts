import { type Client, createClient, type Token } from '@mediabucket/client'
import { computed, effect, type ReadonlySignal, signal } from '@preact/signals'
import { type Connection, createConnection, isUnauthorized, isUnreachable } from '../service/connection.ts'
import { serviceUrl } from '../service/urls.ts'
import type { ChosenFile } from '../uploads/chosen-files.ts'
import { createUploads, type Uploads } from '../uploads/uploads.ts'

/** In the storage of the tab: the token, so that a reload continues. */
const key = () => `mediabucket.upload-link ${serviceUrl().pathname}`

/** Takes the token out of the address, so that neither the address bar nor the history shows it. Null if there is none. */
export function takeToken(): string | null {
  const token = location.hash.slice(1)
  try {
    if (token === '') return sessionStorage.getItem(key())
    history.replaceState(null, '', location.pathname)
    sessionStorage.setItem(key(), token)
  } catch {
    // The browser stores nothing.
  }
  return token === '' ? null : token
}

type LinkState =
  | { readonly at: 'checking' | 'invalid' | 'unreachable' }
  | {
      readonly at: 'open'
      readonly token: Token
      readonly uploads: Uploads
      readonly arrived: ReadonlySignal<number>
      readonly chosen: ReadonlySignal<readonly ChosenFile[]>
    }

/** The number of files that arrived from this tab, also before a reload. */
function createArrived({ id }: Token, uploads: Uploads): ReadonlySignal<number> {
  const stored = `${key()} arrived ${id}`
  let before = 0
  try {
    before = Number(sessionStorage.getItem(stored) ?? 0)
  } catch {
    // The browser stores nothing.
  }
  const arrived = computed(() => before + uploads.view.value.totals.done)
  effect(() => {
    if (arrived.value === before) return
    try {
      sessionStorage.setItem(stored, `${arrived.value}`)
    } catch {
      // A reload then counts from zero.
    }
  })
  return arrived
}

/** An upload link. */
export interface UploadLink {
  readonly state: ReadonlySignal<LinkState>
  /** A message about the uploads; empty if there is none. */
  readonly notice: ReadonlySignal<string>
  open(): Promise<void>
  /** Removes a chosen file that was not sent. */
  remove(file: ChosenFile): void
  /** Sends the chosen files. */
  send(): void
}

/** Few retries: the page itself reports a lost connection and reconnects. `timeout` in milliseconds. */
const clientFor = (token: string, timeout: number): Client =>
  createClient({ url: serviceUrl(), token, timeout, retry: { attempts: 2, delay: 300 } })

/** Milliseconds until the page tries again to reach the service. */
const retryDelay = 3_000

export function createUploadLink(secret: string | null): UploadLink {
  const state = signal<LinkState>({ at: 'checking' })
  const notice = signal('')
  const chosen = signal<readonly ChosenFile[]>([])
  const isToken = secret !== null && /^[\x21-\x7e]+$/.test(secret)

  async function refresh(client: Client): Promise<void> {
    const current = state.peek()
    if (current.at === 'open') state.value = { ...current, token: await client.whoami() }
  }

  function uploadsOf(client: Client, secret: string, token: Token): Uploads {
    const end = () => {
      state.value = { at: 'invalid' }
    }
    const connection: Connection = createConnection(() => client.whoami(), end)
    const uploads = createUploads({
      // Unfinished uploads are stored by this name, and continue only with the same link.
      bucket: `upload link ${token.id}`,
      client,
      largeFileClient: clientFor(secret, 60_000),
      allowed: true,
      onChosen(files) {
        chosen.value = [...chosen.value, ...files]
      },
      notify(text) {
        notice.value = text
      },
      onUploaded: () => undefined,
      onUnreachable: connection.reportLoss,
      untilReached: connection.untilReached,
      onUnauthorized: end,
      onBucketRefused: () => void refresh(client).catch(() => undefined),
      async limitsNow() {
        await refresh(client).catch(() => undefined)
        const current = state.peek()
        return current.at === 'open' ? current.token : token
      },
    })
    connection.onRestored(uploads.onServerBack)
    // The last file may fail. Small files may begin and end between two states of the view, so the number of files is compared.
    const ended = computed(() => (uploads.view.value.totals.left === 0 ? uploads.view.value.totals.all : 0))
    effect(() => {
      if (ended.value === 0) return
      // It was about files that have arrived or failed since.
      notice.value = ''
      void refresh(client).catch(() => undefined)
    })
    void uploads.resumeUnfinished()
    return uploads
  }

  async function open(): Promise<void> {
    if (!isToken) {
      state.value = { at: 'invalid' }
      return
    }
    const client = clientFor(secret, 20_000)
    try {
      const token = await client.whoami()
      if (token.scopes.includes('media:write')) {
        const uploads = uploadsOf(client, secret, token)
        state.value = { at: 'open', token, uploads, arrived: createArrived(token, uploads), chosen }
      } else state.value = { at: 'invalid' }
    } catch (error) {
      state.value = { at: isUnreachable(error) && !isUnauthorized(error) ? 'unreachable' : 'invalid' }
      if (state.value.at === 'unreachable') setTimeout(() => void open(), retryDelay)
    }
  }

  return {
    state,
    notice,
    open,
    remove(file) {
      chosen.value = chosen.value.filter((other) => other !== file)
    },
    send() {
      const current = state.peek()
      const files = chosen.peek()
      chosen.value = []
      if (current.at === 'open') void current.uploads.send(files)
    },
  }
}
