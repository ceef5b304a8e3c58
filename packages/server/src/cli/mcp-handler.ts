import type { Config } from '../service/config.ts'
import type { HandleMcp } from '../service/mcp-routes.ts'

/** The tools of `mediabucket mcp`, over HTTP; null where they are off. The SDK is loaded only if it is used. */
export const loadMcpHandler = async ({ mcp }: Pick<Config, 'mcp'>): Promise<HandleMcp | null> =>
  mcp === 'off' ? null : (await import('@mediabucket/cli/mcp-http')).handleMcp
