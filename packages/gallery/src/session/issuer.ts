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
