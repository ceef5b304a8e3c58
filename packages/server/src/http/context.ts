import type { BaseLogger } from 'pino'
import type { VerifiedGrant } from '../access/expired-items.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { BoundConfig } from '../config/config.ts'
import type { PageSettings } from '../core/page.ts'
import type { PictureTool } from '../core/picture-tools.ts'
import { createTurns, type Turns } from '../core/turns.ts'
import type { DownloadLog } from '../media/download-log.ts'
import { createBackpressure } from './bodies/backpressure.ts'
import {
  type BodyReader,
  createBodyReader,
  createWholeBodyReader,
  type WholeBodyReader,
} from './bodies/body-reader.ts'
import { type CorsPolicy, createCorsPolicy, createRefusalHint, varyHeader } from './headers/cors.ts'
import type { ClientAddresses } from './limits/client-address.ts'
import type { RequestLimits } from './limits/request-limits.ts'
import type { Metrics } from './metrics/metrics.ts'
import {
  type AuthorizationVerifier,
  type AuthorizedJsonReader,
  type Authorizer,
  createAuthorizationVerifier,
  createAuthorizedJsonReader,
  createAuthorizer,
} from './routing/authorizer.ts'

/** The settings of the HTTP service. */
export interface HttpSettings extends BoundConfig {
  readonly tools: ReadonlySet<PictureTool>
}

/** What `server/` passes to the HTTP service besides the operations. */
export interface HttpParts {
  readonly settings: HttpSettings
  readonly catalog: Catalog
  readonly log: BaseLogger
  readonly metrics: Metrics
  readonly limits: RequestLimits
  readonly addresses: ClientAddresses
  readonly isStopping: () => boolean
  /** Null where downloads are not recorded. */
  readonly downloadLog: DownloadLog | null
}

/** What every route may use besides the operations. */
export interface HttpContext extends HttpParts {
  /** The settings that determine the URLs and links of pages. */
  readonly urls: PageSettings
  readonly corsHeaders: CorsPolicy
  /** The value of `Vary` of a response that depends on these headers. */
  readonly vary: (...names: string[]) => string
  readonly authorize: Authorizer
  readonly verifyAuthorization: AuthorizationVerifier
  readonly readBody: BodyReader
  readonly readWholeBody: WholeBodyReader
  readonly readAuthorizedJson: AuthorizedJsonReader
  readonly turns: Turns
}

/** The limit of bytes of all bodies that have been read and are not processed yet. */
const maxUnprocessedBytes = 8 * 1024 * 1024

export function createHttpContext(
  parts: HttpParts,
  verifyToken: (token: string) => Promise<VerifiedGrant>,
): HttpContext {
  const { settings, log, limits, addresses } = parts
  const { baseUrl, mediaBaseUrl, corsOrigins } = settings
  const ownOrigins = [baseUrl, mediaBaseUrl].map((url) => new URL(url).origin)
  const verifyAuthorization = createAuthorizationVerifier(verifyToken)
  const authorize = createAuthorizer(verifyAuthorization, limits, addresses)
  const backpressure = createBackpressure(maxUnprocessedBytes)
  const readBody = createBodyReader(backpressure)
  return {
    ...parts,
    urls: settings,
    corsHeaders: createCorsPolicy(corsOrigins, createRefusalHint(ownOrigins, log)),
    vary: (...names) => varyHeader(corsOrigins, ...names),
    authorize,
    verifyAuthorization,
    readBody,
    readWholeBody: createWholeBodyReader(backpressure),
    readAuthorizedJson: createAuthorizedJsonReader(authorize, readBody),
    turns: createTurns(),
  }
}
