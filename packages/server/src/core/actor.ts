/** Who makes a change, for the audit log (docs/interface.md Y2). */
export interface Actor {
  /** A client with a token, an operator with the command line, or the service itself. */
  readonly kind: 'client' | 'operator' | 'service'
  readonly tokenId: string | null
  /** The user of an external issuer, or the user of the operating system who runs the command. */
  readonly subject: string | null
  /** The IP address of a client. */
  readonly address: string | null
  readonly requestId: string | null
}

/** The service itself, for example when it removes what has expired. */
export const service: Actor = {
  kind: 'service',
  tokenId: null,
  subject: null,
  address: null,
  requestId: null,
}

export const operator = (user: string): Actor => ({ ...service, kind: 'operator', subject: user })
