import type { SignLinks } from '../access/signed-links.ts'
import { BucketVariants } from '../core/bucket-pictures.ts'
import type { ParameterFault } from '../core/faults.ts'
import { isItemId } from '../core/ids.ts'
import { allVariants } from '../core/item-urls.ts'
import type { JsonObject } from '../core/json.ts'
import type { Caller } from '../http/authorizer.ts'
import { malformed, readIds } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { noStore } from '../http/headers.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { Item } from '../storage/catalog/records.ts'
import { findItem, urlOf } from './item-operations.ts'
import * as openapi from './link-routes.openapi.ts'
import type { RecordLinks } from './links.ts'

/** The operations that these routes call. */
interface LinkOperations {
  readonly signLinks: SignLinks
  /** Null if the audit log is off. */
  readonly recordLinks: RecordLinks | null
}

interface LinkParts {
  readonly http: HttpContext
  readonly operations: LinkOperations
  readonly variants: BucketVariants
  /** Seconds. */
  readonly maxLifetime: number
}

/** `POST /api/media/{id}/links` and `POST /api/links` (docs/interface.md H7). */
export function linkRoutes(http: HttpContext, operations: LinkOperations): readonly Route[] {
  const parts = {
    ...{ http, operations, variants: new BucketVariants(http.settings) },
    maxLifetime: Math.floor(http.settings.maxLinkLifetime / 1000),
  }
  const readsBody = true
  return [
    route('POST', '/api/media/:id/links', openapi.createLink, (exchange) => createLink(parts, exchange), {
      readsBody,
    }),
    route('POST', '/api/links', openapi.createLinks, (exchange) => createLinks(parts, exchange), {
      readsBody,
    }),
  ]
}

async function createLink(
  { http: { readAuthorizedJson, catalog, urls }, operations, ...limits }: LinkParts,
  exchange: Exchange<'id'>,
): Promise<Reply> {
  const { caller, body } = await readAuthorizedJson(exchange, 'media:read', linkMembers)
  const { bucketId, actor } = caller
  const { lifetime, names = urls.names ?? false, ...options } = readLinkRequest(body, caller, limits)
  const item = await findItem(catalog, bucketId, exchange.params.id)
  const { sign, expires } = await operations.signLinks(lifetime)
  if (lifetime !== null) await operations.recordLinks?.(actor, [item], { ...options, expires })
  const link = {
    url: urlOf({ ...urls, names }, sign(item, options), item),
    expires_at: new Date(expires * 1000).toISOString(),
  }
  return { status: 201, headers: noStore, json: link }
}

async function createLinks(
  { http: { readAuthorizedJson, catalog, tickQueue, urls }, operations, ...limits }: LinkParts,
  exchange: Exchange,
): Promise<Reply> {
  const { caller, body } = await readAuthorizedJson(exchange, 'media:read', ['ids', ...linkMembers])
  const { tokenId, bucketId, actor } = caller
  const { lifetime, names = urls.names ?? false, ...options } = readLinkRequest(body, caller, limits)
  const ids = [...new Set(readIds(body['ids']))]
  await tickQueue.next(tokenId)
  const found = await Promise.all(ids.map((id) => (isItemId(id) ? catalog.item(id) : null)))
  const isOwn = (item: Item | null | undefined): item is Item => item?.bucketId === bucketId
  const items = found.filter(isOwn)
  const { sign, expires } = await operations.signLinks(lifetime)
  if (lifetime !== null) await operations.recordLinks?.(actor, items, { ...options, expires })
  const json = {
    links: items.map((item) => ({ id: item.id, url: urlOf({ ...urls, names }, sign(item, options), item) })),
    missing: ids.filter((_, index) => !isOwn(found[index])),
    expires_at: new Date(expires * 1000).toISOString(),
  }
  return { status: 200, headers: noStore, json }
}

/** What the links of a request are for. */
interface LinkRequest {
  /** Seconds; null for links that are the same within a window of time (docs/interface.md H10). */
  readonly lifetime: number | null
  readonly variant: string | null
  readonly isDownload: boolean
  /** Whether the URLs have the names of the items; undefined if the request does not say it. */
  readonly names: boolean | undefined
}

/** The members of the body of a request that creates links. */
const linkMembers = ['expires_in', 'variant', 'download', 'names'] as const

/** Reads the body of a request that creates links (docs/interface.md H7). Throws Fault `json-malformed`. */
function readLinkRequest(
  body: JsonObject,
  { pictures }: Pick<Caller, 'pictures'>,
  { variants, maxLifetime }: Pick<LinkParts, 'variants' | 'maxLifetime'>,
): LinkRequest {
  const variantNames = variants.of(pictures).names
  const { expires_in: lifetime = null, variant = null, download: isDownload = false, names } = body
  const hasLifetime = isLifetime(lifetime, maxLifetime)
  const hasVariant = isVariant(variant, variantNames)
  const hasDownload = typeof isDownload === 'boolean'
  const hasNames = names === undefined || typeof names === 'boolean'
  if (hasLifetime && hasVariant && hasDownload && hasNames) return { lifetime, variant, isDownload, names }
  const faults: ParameterFault[] = []
  if (!hasLifetime)
    faults.push({
      parameter: 'expires_in',
      detail: `An integer from 1 to ${maxLifetime}, or null.`,
      ...{ minimum: 1, maximum: maxLifetime, unit: 'seconds' },
    })
  if (!hasVariant)
    faults.push({
      parameter: 'variant',
      detail: `One of: ${[...variantNames, allVariants].join(', ')}; or null.`,
      accepted: [...variantNames, allVariants],
    })
  if (!hasDownload) faults.push({ parameter: 'download', detail: 'true or false.' })
  if (!hasNames) faults.push({ parameter: 'names', detail: 'true or false.' })
  throw malformed(faults)
}

const isLifetime = (value: unknown, most: number): value is number | null =>
  value === null || (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most)

const isVariant = (value: unknown, names: readonly string[]): value is string | null =>
  value === null || value === allVariants || (typeof value === 'string' && names.includes(value))
