import type { FastifyInstance } from 'fastify'
import type { ClientMetadata } from '../../access/issuer/discover.ts'
import type { SignInSettings } from '../../core/issuer-settings.ts'

/** The sign-in of people at the gallery with an issuer. */
export interface GallerySignIn extends SignInSettings {
  /** Null while the issuer has not been reached. */
  metadata(): ClientMetadata | null
}

/** `/sign-in.json`: what the gallery needs to sign people in with the issuer (docs/interface.md G25). The OpenAPI document does not contain it. */
export function signInRoute(app: FastifyInstance, signIn: GallerySignIn | null): void {
  app.get('/sign-in.json', (_request, reply) =>
    reply
      .headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
      .send({ issuer: signIn && describe(signIn) }),
  )
}

const describe = ({ name, clientId, scope, parameters, metadata }: GallerySignIn) => ({
  name,
  client_id: clientId,
  scope,
  parameters,
  metadata: metadata(),
})
