import { serviceUrl } from '../service/urls.ts'

/** A sign-in that the browser stores. */
export interface StoredSession {
  readonly token: string
  /** When it ends. Milliseconds since 1970. */
  readonly until: number
}

/** From the sign-in on. Milliseconds. */
export const sessionLength = 24 * 3_600_000

/** With the path, since services behind one proxy may share an origin and must not see each other's tokens. */
const key = () => `mediabucket.session ${serviceUrl().pathname}`

/** For every tab of this browser, or for this tab alone. */
type Place = 'localStorage' | 'sessionStorage'

/** The session of this tab, or else that of the browser; null where there is none that has not ended. */
export function storedSession(): StoredSession | null {
  return read('sessionStorage') ?? read('localStorage')
}

export function storeSession(session: StoredSession, everyTab: boolean): void {
  try {
    window[everyTab ? 'localStorage' : 'sessionStorage'].setItem(key(), JSON.stringify(session))
  } catch {
    // It lasts until the page is loaded again.
  }
}

/** Removes the session with this token, or whatever is stored. */
export function forgetSession(token?: string): void {
  for (const place of ['sessionStorage', 'localStorage'] as const)
    if (token === undefined || read(place)?.token === token) remove(place)
}

function read(place: Place): StoredSession | null {
  try {
    const stored: unknown = JSON.parse(window[place].getItem(key()) ?? 'null')
    if (isSession(stored) && isCurrent(stored)) return stored
    if (stored !== null) remove(place)
    return null
  } catch {
    return null
  }
}

function remove(place: Place): void {
  try {
    window[place].removeItem(key())
  } catch {
    // Nothing was stored.
  }
}

const isSession = (value: unknown): value is StoredSession =>
  typeof value === 'object' &&
  value !== null &&
  'token' in value &&
  typeof value.token === 'string' &&
  'until' in value &&
  typeof value.until === 'number'

/** An end further off than any session can have is that of a clock that has been set back. */
const isCurrent = ({ until }: StoredSession): boolean =>
  until > Date.now() && until <= Date.now() + sessionLength
