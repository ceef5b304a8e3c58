import { lookup } from 'node:dns/promises'
import { type BoundConfig, defaultBaseUrl } from '../config/config.ts'
import { storeOriginOf } from '../core/s3-location.ts'
import { type BoundPort, bindPort } from '../http/connections/bound-port.ts'
import type { StartContext } from './start-context.ts'

export interface BoundAddress {
  readonly port: number
  readonly baseUrl: string
  readonly settings: BoundConfig
  /** Listens with a server on the bound port. */
  readonly serve: BoundPort['serve']
  readonly closePort: BoundPort['close']
}

/** Binds the port before the HTTP server exists, because URLs in responses contain it where MEDIABUCKET_PORT is 0. */
export async function bindAddress({ config, closers }: StartContext): Promise<BoundAddress> {
  // Exactly one address, also for a host name that has an IPv4 and an IPv6 address.
  const { address } = await lookup(config.host, { order: 'ipv4first' })
  const bound = await bindPort(address, config.port)
  closers.add('the port', () => bound.close())
  const { port, serve, close } = bound
  const baseUrl = config.baseUrl ?? defaultBaseUrl(config.host, port)
  // The gallery fetches text files from the media host.
  const corsOrigins =
    config.mediaBaseUrl === null ? config.corsOrigins : [...config.corsOrigins, new URL(baseUrl).origin]
  const { blobsUrl, sendfile } = config
  const storeOrigin = blobsUrl && sendfile?.header === 'location' ? storeOriginOf(blobsUrl) : null
  const settings = {
    ...config,
    baseUrl,
    mediaBaseUrl: config.mediaBaseUrl ?? baseUrl,
    hasOwnAddress: config.baseUrl !== null,
    corsOrigins,
    storeOrigin,
  }
  return { port, baseUrl, settings, serve, closePort: close }
}
