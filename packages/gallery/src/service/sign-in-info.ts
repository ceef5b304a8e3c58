import { serviceUrl } from './urls.ts'

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

/** What a page may know of the service before a sign-in. */
interface SignInInfo {
  readonly issuer: IssuerInfo | null
  /** The port of the S3 protocol, and the host of its virtual hosts; null if the service does not offer the protocol. */
  readonly s3?: { readonly host: string | null; readonly port: number } | null
  /** The sizes of smaller pictures of buckets that have none of their own, such as `card=640x360:cover`. */
  readonly sizes?: readonly string[]
}

/** Null if the page is served by another server. */
export async function loadSignInInfo(): Promise<SignInInfo | null> {
  try {
    const response = await fetch(new URL('sign-in.json', serviceUrl()), { cache: 'no-store' })
    return await response.json()
  } catch {
    return null
  }
}
