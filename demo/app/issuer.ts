import { exportJWK, generateKeyPair, SignJWT } from 'jose'

/** Signs tokens for the users of the app, which the media service verifies with the published keys. */
export interface Issuer {
  /** The body of the response to `/.well-known/jwks.json`. */
  readonly publishedKeys: string
  /** A JWT that lets the user read, upload and delete in the user's own bucket for five minutes. */
  sign(user: string): Promise<string>
}

/** `url` is the URL of the app; `audience` names the media service. A real app stores its key, and replaces it from time to time. */
export async function createIssuer(url: string, audience: string): Promise<Issuer> {
  const alg = 'ES256'
  const kid = 'app-key-1'
  const { privateKey, publicKey } = await generateKeyPair(alg)
  return {
    publishedKeys: JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), alg, kid, use: 'sig' }] }),
    sign: (user) =>
      new SignJWT({ scope: 'media:read media:write media:delete' })
        .setProtectedHeader({ alg, kid, typ: 'at+jwt' })
        .setIssuer(url)
        .setAudience(audience)
        .setSubject(user)
        .setIssuedAt()
        .setExpirationTime('5m')
        .sign(privateKey),
  }
}
