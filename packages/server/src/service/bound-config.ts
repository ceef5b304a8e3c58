import { storeOriginOf } from '../core/storage-urls.ts'
import { findTools, toolNames } from '../pictures/tools.ts'
import { type Config, defaultBaseUrl } from './config.ts'

/** The settings that URLs depend on, for processes that bind no port. `port` is the port of the service. */
export const urlSettings = (config: Config, port = config.port) => ({
  ...boundConfig(config, port),
  tools: toolNames(findTools(config.searchPath)),
})

/** The settings of a service whose port is bound, so that its URLs are known. */
export function boundConfig(config: Config, port: number) {
  const baseUrl = config.baseUrl ?? defaultBaseUrl(config.host, port)
  const { blobsUrl, sendfile } = config
  return {
    ...config,
    baseUrl,
    mediaBaseUrl: config.mediaBaseUrl ?? baseUrl,
    hasOwnAddress: config.baseUrl !== null,
    ...corsOriginsOf(config, baseUrl),
    storeOrigin: blobsUrl && sendfile?.header === 'location' ? storeOriginOf(blobsUrl) : null,
  }
}

/** The gallery fetches text files from the media host. */
export const corsOriginsOf = (
  { mediaBaseUrl, corsOrigins }: Pick<Config, 'mediaBaseUrl' | 'corsOrigins'>,
  baseUrl: string,
) => ({
  corsOrigins: mediaBaseUrl === null ? corsOrigins : [...corsOrigins, new URL(baseUrl).origin],
})
