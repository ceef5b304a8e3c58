import type { ParameterFault } from '../../core/fault.ts'
import { type JsonObject, malformed } from '../bodies/read-json.ts'

/** What the links of a request are for. */
export interface LinkRequest {
  /** Seconds; null for links that are the same within a window of time (docs/interface.md H10). */
  readonly lifetime: number | null
  readonly variant: string | null
  readonly isDownload: boolean
}

/** The limits of a service. */
export interface LinkLimits {
  /** Seconds. */
  readonly maxLifetime: number
  readonly variantNames: readonly string[]
}

/** The members of the body of a request that creates links. */
export const linkMembers = ['expires_in', 'variant', 'download'] as const

/** Reads the body of a request that creates links (docs/interface.md H7). Throws Fault `json-malformed`. */
export function readLinkRequest(body: JsonObject, { maxLifetime, variantNames }: LinkLimits): LinkRequest {
  const { expires_in: lifetime = null, variant = null, download: isDownload = false } = body
  const hasLifetime = isLifetime(lifetime, maxLifetime)
  const hasVariant = isVariant(variant, variantNames)
  const hasDownload = typeof isDownload === 'boolean'
  if (hasLifetime && hasVariant && hasDownload) return { lifetime, variant, isDownload }
  const faults: ParameterFault[] = []
  // The command line reads the limit and the names from these texts (cli/client/link.ts).
  if (!hasLifetime)
    faults.push({ parameter: 'expires_in', detail: `An integer from 1 to ${maxLifetime}, or null.` })
  if (!hasVariant)
    faults.push({ parameter: 'variant', detail: `One of: ${variantNames.join(', ')}; or null.` })
  if (!hasDownload) faults.push({ parameter: 'download', detail: 'true or false.' })
  throw malformed(faults)
}

const isLifetime = (value: unknown, most: number): value is number | null =>
  value === null || (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most)

const isVariant = (value: unknown, names: readonly string[]): value is string | null =>
  value === null || (typeof value === 'string' && names.includes(value))
