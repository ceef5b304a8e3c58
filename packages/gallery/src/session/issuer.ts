import { type IssuerInfo, loadSignInInfo } from '../service/sign-in-info.ts'
import { serviceUrl } from '../service/urls.ts'

/** Null if there is none. */
export const loadIssuer = async (): Promise<IssuerInfo | null> => (await loadSignInInfo())?.issuer ?? null

/** What is needed to finish a sign-in that was begun in this tab. */
export interface PendingSignIn {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  /** As in Session.signIn. */
  readonly everyTab: boolean
  /** The hash of the page at the beginning. */
  readonly hash: string
}

/** The response of the issuer, in the URL of the page. */
export interface IssuerCallback {
  readonly parameters: URLSearchParams
  readonly pending: PendingSignIn
}

const key = () => `mediabucket.sign-in ${serviceUrl().pathname}`

export const storePending = (pending: PendingSignIn): void =>
  sessionStorage.setItem(key(), JSON.stringify(pending))

/**
 * Takes the response of the issuer out of the URL and of the history, before anything else is loaded. Null if there is none, or this
 * tab has begun no sign-in with its state: a link cannot sign people in to the account of somebody else.
 */
export function takeCallback(): IssuerCallback | null {
  const parameters = new URLSearchParams(location.search)
  const state = parameters.get('state')
  if (!(parameters.has('code') || parameters.has('error'))) return null
  const pending = takePending()
  history.replaceState(null, '', location.pathname + (pending?.hash ?? ''))
  return pending !== null && pending.state === state ? { parameters, pending } : null
}

function takePending(): PendingSignIn | null {
  try {
    const stored: PendingSignIn | null = JSON.parse(sessionStorage.getItem(key()) ?? 'null')
    sessionStorage.removeItem(key())
    return stored
  } catch {
    return null
  }
}
