import { type Client, createClient, type Token } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import { errorMessage, isUnauthorized, isUnreachable } from '../service/errors.ts'
import { serviceUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { openSessionChannel } from './session-channel.ts'
import {
  forgetSession,
  type StoredSession,
  sessionLength,
  storedSession,
  storeSession,
} from './stored-session.ts'

/** Somebody who has shown a good token. */
export interface SignedIn {
  readonly token: string
  readonly about: Token
  readonly client: Client
}

export type SessionState =
  | { readonly at: 'out'; readonly message: string; readonly failed: boolean; readonly busy: boolean }
  | { readonly at: 'resuming'; readonly unreachable: boolean }
  | { readonly at: 'in'; readonly signedIn: SignedIn }

export interface Session {
  readonly state: ReadonlySignal<SessionState>
  /** `everyTab`: for a day in every tab of this browser, also after it was closed; or in this tab until it is closed. */
  signIn(token: string, everyTab: boolean): Promise<void>
  /** Continues with the token that the browser stores, if there is one. */
  resume(): Promise<void>
  /** In every tab. */
  signOut(): void
  /** The service does not take the token any more. */
  end(): void
}

const out = (message: string, failed: boolean): SessionState => ({ at: 'out', message, failed, busy: false })

export function createSession(): Session {
  const state = signal<SessionState>(
    storedSession() === null ? out('', false) : { at: 'resuming', unreachable: false },
  )
  let current: StoredSession | null = null
  let ending: ReturnType<typeof setTimeout> | undefined

  function close(message: string, failed: boolean, token?: string): void {
    clearTimeout(ending)
    forgetSession(token)
    state.value = out(message, failed)
  }

  const channel = openSessionChannel(() => {
    if (state.value.at !== 'out') close(strings.signIn.signedOut, false)
  })

  /** Ends the session after its day; timers stand still while a computer sleeps, so this runs when the tab is shown too. */
  function check(session: StoredSession): void {
    clearTimeout(ending)
    if (state.value.at !== 'in' || state.value.signedIn.token !== session.token) return
    const left = session.until - Date.now()
    if (left <= 0) close(strings.signIn.dayPassed, false, session.token)
    else ending = setTimeout(() => check(session), left)
  }

  async function open(session: StoredSession, store: () => void): Promise<void> {
    const { token } = session
    const client = clientFor(token)
    const about = await client.whoami()
    if (!about.scopes.includes('media:read')) {
      const scopes = about.scopes.join(', ') || strings.signIn.noScopes
      return close(strings.signIn.mayNotRead(scopes), true, token)
    }
    store()
    current = session
    state.value = { at: 'in', signedIn: { token, about, client } }
    check(session)
  }

  addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible' && current) check(current)
  })

  return {
    state,
    async signIn(typed, everyTab) {
      const token = typed.trim()
      if (!/^[\x21-\x7e]+$/.test(token)) {
        state.value = out(token === '' ? strings.signIn.missing : strings.signIn.malformed, true)
        return
      }
      state.value = { at: 'out', message: '', failed: false, busy: true }
      try {
        const session = { token, until: Date.now() + sessionLength }
        await open(session, () => storeSession(session, everyTab))
      } catch (error) {
        state.value = out(isUnauthorized(error) ? strings.signIn.refused : errorMessage(error), true)
      }
    },
    async resume() {
      const session = storedSession()
      if (session === null) return
      try {
        await open(session, () => undefined)
      } catch (error) {
        if (isUnreachable(error)) state.value = { at: 'resuming', unreachable: true }
        else if (isUnauthorized(error)) close(strings.signIn.ended, true, session.token)
        else state.value = out(errorMessage(error), true)
      }
    },
    signOut() {
      close(strings.signIn.signedOut, false)
      channel.signOut()
    },
    end() {
      const token = state.value.at === 'in' ? state.value.signedIn.token : undefined
      close(strings.signIn.ended, true, token)
    },
  }
}

/** Few tries: the page tells of a service that is gone, and tries again by itself. */
const clientFor = (token: string): Client =>
  createClient({ url: serviceUrl(), token, timeout: 20_000, retry: { attempts: 2, delay: 300 } })
