import { serviceUrl } from '../service/urls.ts'

/** A session in the browser's storage. */
export interface StoredSession {
  readonly token: string
  /** Its end. Milliseconds since 1970. */
  readonly until: number
  /** Only of a token of the issuer. */
  readonly renewal?: Renewal
}

/** How a token of the issuer is replaced. */
interface Renewal {
  /** The end of the token. Milliseconds since 1970. */
  readonly expiresAt: number
  /** Null if the issuer gave none: then the session ends with the token. */
  readonly refreshToken: string | null
}

/** Returns the current token of a session, and renews it before it expires. */
export type TokenSource = () => string | Promise<string>

/** Milliseconds. */
export const sessionLength = 24 * 3_600_000

/** Contains the path, because servers behind one proxy may share an origin and must not read each other's tokens. */
const key = () => `mediabucket.session ${serviceUrl().pathname}`

/** For all tabs of the browser, or for this tab only. */
type StorageName = 'localStorage' | 'sessionStorage'

/** The session of this tab, or else of the browser; null if there is none or it has ended. */
export function storedSession(): StoredSession | null {
  return read('sessionStorage') ?? read('localStorage')
}

export function storeSession(session: StoredSession, everyTab: boolean): void {
  try {
    window[everyTab ? 'localStorage' : 'sessionStorage'].setItem(key(), JSON.stringify(session))
  } catch {
    // Without storage the session ends with the next page load.
  }
}

/** Replaces the session with this token where it is stored. */
export function replaceSession(token: string, next: StoredSession): void {
  for (const [name, everyTab] of [
    ['sessionStorage', false],
    ['localStorage', true],
  ] as const)
    if (read(name)?.token === token) storeSession(next, everyTab)
}

/** Removes the session with this token, or every session if no token is given. */
export function forgetSession(token?: string): void {
  for (const storage of ['sessionStorage', 'localStorage'] as const)
    if (token === undefined || read(storage)?.token === token) remove(storage)
}

function read(storage: StorageName): StoredSession | null {
  try {
    const stored: unknown = JSON.parse(window[storage].getItem(key()) ?? 'null')
    if (isSession(stored) && isCurrent(stored)) return stored
    if (stored !== null) remove(storage)
    return null
  } catch {
    return null
  }
}

function remove(storage: StorageName): void {
  try {
    window[storage].removeItem(key())
  } catch {
    // Without storage there is nothing to remove.
  }
}

const isSession = (value: unknown): value is StoredSession =>
  typeof value === 'object' &&
  value !== null &&
  'token' in value &&
  typeof value.token === 'string' &&
  'until' in value &&
  typeof value.until === 'number'

/** An end later than a new session's means that the clock was set back. */
const isCurrent = ({ until }: StoredSession): boolean =>
  until > Date.now() && until <= Date.now() + sessionLength
