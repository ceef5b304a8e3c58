import { type Client, createClient, type Token } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import { serviceUrl } from '../service/address.ts'
import { explain, isRefused, isUnreachable } from '../service/explain.ts'
import { strings } from '../strings.ts'
import { forgetToken, keepToken, keptToken } from './kept-token.ts'

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
  signIn(token: string): Promise<void>
  /** Goes on with the token that this tab keeps, if it has one. */
  resume(): Promise<void>
  signOut(): void
  /** The service does not take the token any more. */
  end(): void
}

const out = (message: string, failed: boolean): SessionState => ({ at: 'out', message, failed, busy: false })

export function createSession(): Session {
  const state = signal<SessionState>(
    keptToken() === null ? out('', false) : { at: 'resuming', unreachable: false },
  )

  async function open(token: string): Promise<void> {
    const client = clientFor(token)
    const about = await client.whoami()
    if (!about.scopes.includes('media:read')) {
      forgetToken()
      const scopes = about.scopes.join(', ') || strings.signIn.noScopes
      state.value = out(strings.signIn.mayNotRead(scopes), true)
      return
    }
    keepToken(token)
    state.value = { at: 'in', signedIn: { token, about, client } }
  }

  return {
    state,
    async signIn(typed) {
      const token = typed.trim()
      if (!/^[\x21-\x7e]+$/.test(token)) {
        state.value = out(token === '' ? strings.signIn.missing : strings.signIn.malformed, true)
        return
      }
      state.value = { at: 'out', message: '', failed: false, busy: true }
      try {
        await open(token)
      } catch (error) {
        state.value = out(isRefused(error) ? strings.signIn.refused : explain(error), true)
      }
    },
    async resume() {
      const token = keptToken()
      if (token === null) return
      try {
        await open(token)
      } catch (error) {
        if (isUnreachable(error)) {
          state.value = { at: 'resuming', unreachable: true }
        } else {
          if (isRefused(error)) forgetToken()
          state.value = out(isRefused(error) ? strings.signIn.ended : explain(error), true)
        }
      }
    },
    signOut() {
      forgetToken()
      state.value = out(strings.signIn.signedOut, false)
    },
    end() {
      forgetToken()
      state.value = out(strings.signIn.ended, true)
    },
  }
}

/** Few tries: the page tells of a service that is gone, and tries again by itself. */
const clientFor = (token: string): Client =>
  createClient({ url: serviceUrl(), token, timeout: 20_000, retry: { attempts: 2, delay: 300 } })
