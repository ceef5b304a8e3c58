import { serviceUrl } from '../service/urls.ts'

/** The issuer with which people can sign in (docs/interface.md G25). */
export interface IssuerInfo {
  readonly name: string
  readonly client_id: string
  readonly scope: string
  readonly parameters: Readonly<Record<string, string>>
  /** Members of its discovery document; null while the service has not reached it. */
  readonly metadata: IssuerMetadata | null
}

/** A type, because an interface is not assignable to those of the library. */
export type IssuerMetadata = {
  readonly issuer: string
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  readonly revocation_endpoint?: string
  readonly id_token_signing_alg_values_supported: string[]
  readonly authorization_response_iss_parameter_supported: boolean
}

/** Null if there is none, or the page is served by another server. */
export async function loadIssuer(): Promise<IssuerInfo | null> {
  try {
    const response = await fetch(new URL('sign-in.json', serviceUrl()), { cache: 'no-store' })
    const { issuer }: { issuer: IssuerInfo | null } = await response.json()
    return issuer
  } catch {
    return null
  }
}

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
