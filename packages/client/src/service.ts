import { type AuditEvent, type EventOptions, iterateEvents } from './audit-log.ts'
import { type BucketManager, createBucketManager } from './buckets.ts'
import type { Client } from './client.ts'
import { type CallOptions, type ClientOptions, sendSettings } from './client-options.ts'
import { createClient } from './create-client.ts'
import { createKeyManager, type KeyManager } from './keys.ts'
import { fetchToken, type Token } from './tokens.ts'
import { endpointsOf } from './urls.ts'
import { type BucketUsage, type DayOptions, iterateUsage } from './usage.ts'

/** All buckets of a service, with a token of the service. Calls reject as those of `Client`. */
export interface ServiceClient {
  /** One bucket. The token needs the scopes of the calls, such as `media:read`. */
  bucket(name: string): Client

  /** Manages the buckets, with the scope `buckets:manage`. */
  readonly buckets: BucketManager

  /** Iterates over the usage of all buckets on a day, by name, also of deleted ones. The token needs the scope `buckets:manage`. */
  usage(options?: DayOptions): AsyncGenerator<BucketUsage, void, undefined>

  /** Manages the keys that sign URLs, with the scope `buckets:manage`. */
  readonly keys: KeyManager

  /** Iterates over the selected events of the audit log, earliest first. The token needs the scopes `buckets:manage` and `media:read`. */
  events(options?: EventOptions): AsyncGenerator<AuditEvent, void, undefined>

  /** Returns the scopes and the expiry of the token. It needs no scope. */
  whoami(options?: CallOptions): Promise<Token>
}

/** Creates a client of a whole service. Throws a `TypeError` for invalid options. Sends no request. */
export function createServiceClient(options: Omit<ClientOptions, 'bucket'>): ServiceClient {
  const settings = sendSettings(options)
  const endpoints = endpointsOf(options.url)
  return Object.freeze({
    bucket: (name: string) => createClient({ ...options, bucket: name }),
    buckets: createBucketManager(settings, endpoints),
    usage: (options: DayOptions = {}) => iterateUsage(settings, endpoints, options),
    keys: createKeyManager(settings, endpoints),
    events: (selection: EventOptions = {}) => iterateEvents(settings, endpoints, selection),
    whoami: async (call: CallOptions = {}) => await fetchToken(settings, endpoints, call),
  })
}
