import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { Closers } from '../core/closers.ts'
import type { PeerCounts } from '../core/peer-counts.ts'
import type { Metrics } from '../http/metrics/metrics.ts'

/** What every step of the start receives. */
export interface StartContext {
  readonly config: Config
  readonly log: Logger
  readonly metrics: Metrics
  readonly closers: Closers
  /** The other workers of the service. */
  readonly peers: PeerCounts
}
