import { type Client, type ClientOptions, createClient, type Token } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import { errorMessage, isUnauthorized, isUnreachable } from '../service/connection.ts'
import type { IssuerInfo } from '../service/sign-in-info.ts'
import { serviceUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import type { IssuerCallback } from './issuer.ts'
import { renewedSession, revokeSession } from './renewed-session.ts'
import {
  forgetSession,
  type StoredSession,
  sessionLength,
  storedSession,
  storeSession,
  type TokenSource,
} from './stored-session.ts'

/** A token of a bucket. */
export interface BucketToken extends Token {
  readonly bucket: string
}

/** The clients of one bucket. */
interface BucketClients {
  readonly client: Client
  /** Waits longer for a response. */
  readonly largeFileClient: Client
}

/** A verified token and what it gives access to. */
export interface SignedIn extends BucketClients {
  /** The token at the beginning of the session. */
  readonly token: string
  readonly tokenInfo: BucketToken
}

/** A verified service token. */
export interface SignedInToService {
  /** The token at the beginning of the session. */
  readonly token: string
  readonly tokenInfo: Token
  readonly options: Omit<ClientOptions, 'bucket'>
  clientsOf(bucket: string): BucketClients
}

export type SessionState =
  | { readonly at: 'signed-out'; readonly message: string; readonly failed: boolean; readonly busy: boolean }
  | { readonly at: 'resuming'; readonly unreachable: boolean }
  | { readonly at: 'signed-in'; readonly signedIn: SignedIn }
  | { readonly at: 'service'; readonly signedIn: SignedInToService }

export interface Session {
  readonly state: ReadonlySignal<SessionState>
  /** `everyTab`: in all tabs of the browser for 24 hours; otherwise in this tab until it is closed. */
  signIn(token: string, everyTab: boolean): Promise<void>
  /** Leaves the page to sign in with the issuer. */
  signInWithIssuer(issuer: IssuerInfo, everyTab: boolean): Promise<void>
  /** Continues the stored session, if there is one. */
  resume(): Promise<void>
  /** Signs out in all tabs. */
  signOut(): void
  /** Ends the session because the server rejected the token. */
  end(): void
}

/** A session of this tab. */
interface Opened {
  session: StoredSession
}

const signedOut = (message: string, failed: boolean): SessionState => ({
  at: 'signed-out',
  message,
  failed,
  busy: false,
})

/** `callback` is the response of the issuer, if the page was loaded with one. */
export function createSession(callback: IssuerCallback | null): Session {
  const state = signal<SessionState>(
    storedSession() === null && callback === null
      ? signedOut('', false)
      : { at: 'resuming', unreachable: false },
  )
  /** Renewals replace its session. */
  let current: Opened | null = null
  let endTimer: ReturnType<typeof setTimeout> | undefined

  function close(message: string, failed: boolean, token?: string): void {
    clearTimeout(endTimer)
    forgetSession(token)
    current = null
    state.value = signedOut(message, failed)
  }

  function leave(): void {
    revokeSession(current?.session)
    close(strings.signIn.signedOut, false)
  }

  const otherTabs = connectTabs(() => {
    if (state.value.at !== 'signed-out') leave()
  })

  /** Ends the session when its time is over. Also called when the tab becomes visible, because timers stop during sleep. */
  function scheduleEnd(): void {
    clearTimeout(endTimer)
    if (!isSignedIn(state.value) || current === null) return
    const { token, until, renewal } = current.session
    const end = renewal?.refreshToken === null ? Math.min(until, renewal.expiresAt) : until
    const left = end - Date.now()
    if (left > 0) endTimer = setTimeout(scheduleEnd, left)
    else close(end === until ? strings.signIn.dayPassed : strings.signIn.expired, false, token)
  }

  async function open(session: StoredSession, store: (session: StoredSession) => void): Promise<void> {
    const { token } = session
    const opened = { session }
    current = opened
    const clientsOf = clientsWith(tokenSource(opened))
    const clients = clientsOf()
    const tokenInfo = await clients.client.whoami()
    // The person has signed out, or in with another token.
    if (current !== opened) return
    const { bucket } = tokenInfo
    if (bucket !== null && !tokenInfo.scopes.includes('media:read')) {
      const scopes = tokenInfo.scopes.join(', ') || strings.signIn.noScopes
      return close(strings.signIn.cannotRead(scopes), true, token)
    }
    store(opened.session)
    state.value =
      bucket === null
        ? {
            at: 'service',
            signedIn: { token, tokenInfo, options: optionsWith(tokenSource(opened)), clientsOf },
          }
        : { at: 'signed-in', signedIn: { token, tokenInfo: { ...tokenInfo, bucket }, ...clients } }
    scheduleEnd()
  }

  /** Finishes what signInWithIssuer has begun. */
  async function finish({ parameters, pending }: IssuerCallback): Promise<void> {
    try {
      const { finishSignIn } = await import('./issuer-sign-in.ts')
      const session = await finishSignIn(parameters, pending)
      await open(session, (opened) => storeSession(opened, pending.everyTab))
    } catch (error) {
      // Another tab may have signed in since. A reload would continue its session.
      if (storedSession() !== null) return resumeStored()
      const message = isUnauthorized(error) ? strings.signIn.refused : strings.signIn.issuerFailed
      state.value = signedOut(message, true)
    }
  }

  async function resumeStored(): Promise<void> {
    const session = storedSession()
    if (session === null) return
    try {
      await open(session, () => undefined)
    } catch (error) {
      if (isUnreachable(error)) state.value = { at: 'resuming', unreachable: true }
      else if (isUnauthorized(error)) close(strings.signIn.ended, true, session.token)
      else state.value = signedOut(errorMessage(error), true)
    }
  }

  addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible' && current) scheduleEnd()
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
        await open(session, (opened) => storeSession(opened, everyTab))
      } catch (error) {
        state.value = signedOut(isUnauthorized(error) ? strings.signIn.refused : errorMessage(error), true)
      }
    },
    async signInWithIssuer(issuer, everyTab) {
      state.value = { at: 'signed-out', message: '', failed: false, busy: true }
      try {
        const { beginSignIn } = await import('./issuer-sign-in.ts')
        await beginSignIn(issuer, everyTab)
      } catch {
        state.value = signedOut(strings.signIn.issuerFailed, true)
      }
    },
    async resume() {
      if (callback === null) return resumeStored()
      const response = callback
      callback = null
      await finish(response)
    },
    signOut() {
      leave()
      otherTabs.signOut()
    },
    end() {
      close(strings.signIn.ended, true, isSignedIn(state.value) ? current?.session.token : undefined)
    },
  }
}

/** The token as it is, or as the issuer renews it. A renewal that ends after the session changes no other one. */
function tokenSource(opened: Opened): TokenSource {
  const { token, renewal } = opened.session
  if (!renewal) return () => token
  return async () => {
    opened.session = await renewedSession(opened.session)
    return opened.session.token
  }
}

const isSignedIn = ({ at }: SessionState): boolean => at === 'signed-in' || at === 'service'

/** Few retries: the page itself reports a lost connection and reconnects. */
const optionsWith = (token: TokenSource) => ({
  url: serviceUrl(),
  token,
  timeout: 20_000,
  retry: { attempts: 2, delay: 300 },
})

const clientsWith =
  (token: TokenSource) =>
  (bucket?: string): BucketClients => {
    const options = { ...optionsWith(token), bucket }
    return { client: createClient(options), largeFileClient: createClient({ ...options, timeout: 60_000 }) }
  }

/** Connects the tabs of this gallery in this browser. Messages contain no token. */
function connectTabs(onSignOut: () => void) {
  const channel = new BroadcastChannel(`mediabucket.session ${serviceUrl().pathname}`)
  channel.onmessage = ({ data }) => {
    if (data === 'signed-out') onSignOut()
  }
  return { signOut: () => channel.postMessage('signed-out') }
}
