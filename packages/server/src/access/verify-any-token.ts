import type { VerifiedGrant } from './expired-items.ts'

type Verifier = (token: string) => Promise<VerifiedGrant>

/** Chooses by the form: JWTs have dots, and tokens of this service have none. */
export const verifyAnyToken =
  ({
    verifyToken,
    verifyUser,
  }: {
    readonly verifyToken: Verifier
    readonly verifyUser: Verifier
  }): Verifier =>
  (token) =>
    token.includes('.') ? verifyUser(token) : verifyToken(token)
