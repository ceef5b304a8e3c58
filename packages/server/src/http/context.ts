import type { BaseLogger } from 'pino'
import type { BucketSettings } from '../core/bucket-settings.ts'
import type { PageSettings } from '../core/page.ts'
import type { SendFile } from '../core/storage-urls.ts'
import { TickQueue } from '../core/tasks.ts'
import type { Scope, ServiceScope } from '../core/token-rules.ts'
import type { VariantSize } from '../core/variant-sizes.ts'
import type { Crop, PictureTool } from '../core/variants.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type {
  AuthorizationVerifier,
  AuthorizedJsonReader,
  Authorizer,
  Caller,
  ServiceAuthorizer,
  ServiceCaller,
} from './authorizer.ts'
import {
  Backpressure,
  type BodyReader,
  createAuthorizedJsonReader,
  createBodyReader,
  createWholeBodyReader,
  type WholeBodyReader,
} from './bodies.ts'
import { type CorsPolicy, createCorsPolicy, createRefusalHint, varyHeader } from './cors.ts'
import type { ClientAddresses, RequestLimits } from './limits.ts'
import type { Metrics } from './metrics.ts'
import { createFaultReporter, type FaultReporter } from './problems.ts'
import type { UsageCounter } from './usage-log.ts'

/** The settings that routes read (docs/settings.md). Durations are in milliseconds, sizes in bytes. */
export interface HttpSettings extends PageSettings {
  readonly baseUrl: string
  readonly mediaBaseUrl: string
  /** Whether the base URL is configured; otherwise it is made of host and port. */
  readonly hasOwnAddress: boolean
  /** The origin to which requests for bytes are redirected; null if they are not. */
  readonly storeOrigin: string | null
  readonly corsOrigins: readonly string[]
  /** Whether requests that change something are refused. */
  readonly readOnly: boolean
  readonly envelope: 'bare' | 'wrapped'
  /** The region of all buckets in the S3 protocol. */
  readonly s3Region: string
  /** The settings of buckets that the S3 protocol creates. */
  readonly s3BucketOptions: Partial<BucketSettings>
  readonly idleTimeout: number
  readonly maxFileSize: number
  readonly inlineSize: number
  readonly maxLinkLifetime: number
  readonly mediaMaxAge: number
  /** 0 for no limit. */
  readonly maxStreamsPerToken: number
  readonly maxConnectionsPerAddress: number
  /** Null if the service sends the bytes of all files itself. */
  readonly sendfile: SendFile | null
  readonly variants: readonly VariantSize[]
  readonly crop: Crop
  readonly tools: ReadonlySet<PictureTool>
  /** Ranges of addresses that webhooks may call although they are not public. */
  readonly webhookAllow: readonly string[]
}

/** What `service/start.ts` passes to the HTTP service besides the operations. */
export interface HttpParts {
  readonly settings: HttpSettings
  readonly catalog: Catalog
  readonly log: BaseLogger
  readonly metrics: Metrics
  readonly limits: RequestLimits
  readonly usage: UsageCounter
  readonly addresses: ClientAddresses
  /** Aborted when the service begins to stop: then readiness is false, and responses close their connections. */
  readonly stopping: AbortSignal
  /** Aborted when the service accepts no more connections, after the delay of a stop: then responses that stay open end. */
  readonly closing: AbortSignal
  /** The limit for bodies that are read and not processed yet, and that for small ones that are collected. Bytes. */
  readonly bodyMemory: number
  /** The limit for bytes of responses that clients have not read. Bytes. */
  readonly responseMemory: number
}

/** What every route may use besides the operations. */
export interface HttpContext extends HttpParts {
  /** The settings that determine the URLs and links of pages. */
  readonly urls: PageSettings
  readonly corsHeaders: CorsPolicy
  /** The value of `Vary` of a response that depends on these headers. */
  readonly vary: (...names: string[]) => string
  readonly authorize: Authorizer
  readonly authorizeService: ServiceAuthorizer
  readonly verifyAuthorization: AuthorizationVerifier
  readonly readBody: BodyReader
  readonly readWholeBody: WholeBodyReader
  readonly readAuthorizedJson: AuthorizedJsonReader
  readonly readServiceJson: AuthorizedJsonReader<ServiceScope, ServiceCaller>
  readonly tickQueue: TickQueue
  readonly reportFault: FaultReporter
}

export function createHttpContext(
  parts: HttpParts,
  access: Pick<HttpContext, 'authorize' | 'authorizeService' | 'verifyAuthorization'>,
): HttpContext {
  const { settings, log, metrics, limits, bodyMemory } = parts
  const { baseUrl, mediaBaseUrl, corsOrigins } = settings
  const ownOrigins = [baseUrl, mediaBaseUrl].map((url) => new URL(url).origin)
  const backpressure = new Backpressure(bodyMemory)
  const readBody = createBodyReader(backpressure)
  return {
    ...parts,
    ...access,
    urls: settings,
    corsHeaders: createCorsPolicy(() => settings.corsOrigins, createRefusalHint(ownOrigins, log)),
    vary: (...names) => varyHeader(corsOrigins, ...names),
    readBody,
    readWholeBody: createWholeBodyReader(backpressure, bodyMemory),
    readAuthorizedJson: createAuthorizedJsonReader<Scope, Caller>(access.authorize, readBody),
    readServiceJson: createAuthorizedJsonReader<ServiceScope, ServiceCaller>(
      access.authorizeService,
      readBody,
    ),
    tickQueue: new TickQueue(),
    reportFault: createFaultReporter({
      limits,
      countStorageError: (error) => metrics.storage.countError(error),
      log,
    }),
  }
}
