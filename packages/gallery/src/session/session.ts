import { type Client, createClient, type Token } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import { errorMessage, isUnauthorized, isUnreachable } from '../service/errors.ts'
import { serviceUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import {
  forgetSession,
  type StoredSession,
  sessionLength,
  storedSession,
  storeSession,
} from './stored-session.ts'

/** A verified token and what it gives access to. */
export interface SignedIn {
  readonly token: string
  readonly tokenInfo: Token
  readonly client: Client
}

export type SessionState =
  | { readonly at: 'signed-out'; readonly message: string; readonly failed: boolean; readonly busy: boolean }
  | { readonly at: 'resuming'; readonly unreachable: boolean }
  | { readonly at: 'signed-in'; readonly signedIn: SignedIn }

export interface Session {
  readonly state: ReadonlySignal<SessionState>
  /** `everyTab`: in all tabs of the browser for 24 hours; otherwise in this tab until it is closed. */
  signIn(token: string, everyTab: boolean): Promise<void>
  /** Continues the stored session, if there is one. */
  resume(): Promise<void>
  /** Signs out in all tabs. */
  signOut(): void
  /** Ends the session because the server rejected the token. */
  end(): void
}

const signedOut = (message: string, failed: boolean): SessionState => ({
  at: 'signed-out',
  message,
  failed,
  busy: false,
})

export function createSession(): Session {
  const state = signal<SessionState>(
    storedSession() === null ? signedOut('', false) : { at: 'resuming', unreachable: false },
  )
  let current: StoredSession | null = null
  let endTimer: ReturnType<typeof setTimeout> | undefined

  function close(message: string, failed: boolean, token?: string): void {
    clearTimeout(endTimer)
    forgetSession(token)
    state.value = signedOut(message, failed)
  }

  const otherTabs = connectTabs(() => {
    if (state.value.at !== 'signed-out') close(strings.signIn.signedOut, false)
  })

  /** Ends the session when its time is over. Also called when the tab becomes visible, because timers stop during sleep. */
  function scheduleEnd(session: StoredSession): void {
    clearTimeout(endTimer)
    if (state.value.at !== 'signed-in' || state.value.signedIn.token !== session.token) return
    const left = session.until - Date.now()
    if (left <= 0) close(strings.signIn.dayPassed, false, session.token)
    else endTimer = setTimeout(() => scheduleEnd(session), left)
  }

  async function open(session: StoredSession, store: () => void): Promise<void> {
    const { token } = session
    const client = clientFor(token)
    const tokenInfo = await client.whoami()
    if (!tokenInfo.scopes.includes('media:read')) {
      const scopes = tokenInfo.scopes.join(', ') || strings.signIn.noScopes
      return close(strings.signIn.cannotRead(scopes), true, token)
    }
    store()
    current = session
    state.value = { at: 'signed-in', signedIn: { token, tokenInfo, client } }
    scheduleEnd(session)
  }

  addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible' && current) scheduleEnd(current)
  })

  return {
    state,
    async signIn(typed, everyTab) {
      const token = typed.trim()
      if (!/^[\x21-\x7e]+$/.test(token)) {
        state.value = signedOut(token === '' ? strings.signIn.missing : strings.signIn.malformed, true)
        return
      }
      state.value = { at: 'signed-out', message: '', failed: false, busy: true }
      try {
        const session = { token, until: Date.now() + sessionLength }
        await open(session, () => storeSession(session, everyTab))
      } catch (error) {
        state.value = signedOut(isUnauthorized(error) ? strings.signIn.refused : errorMessage(error), true)
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
        else state.value = signedOut(errorMessage(error), true)
      }
    },
    signOut() {
      close(strings.signIn.signedOut, false)
      otherTabs.signOut()
    },
    end() {
      const token = state.value.at === 'signed-in' ? state.value.signedIn.token : undefined
      close(strings.signIn.ended, true, token)
    },
  }
}

/** Few retries: the page itself reports a lost connection and reconnects. */
const clientFor = (token: string): Client =>
  createClient({ url: serviceUrl(), token, timeout: 20_000, retry: { attempts: 2, delay: 300 } })

/** Connects the tabs of this gallery in this browser. Messages contain no token. */
function connectTabs(onSignOut: () => void) {
  const channel = new BroadcastChannel(`mediabucket.session ${serviceUrl().pathname}`)
  channel.onmessage = ({ data }) => {
    if (data === 'signed-out') onSignOut()
  }
  return { signOut: () => channel.postMessage('signed-out') }
}
