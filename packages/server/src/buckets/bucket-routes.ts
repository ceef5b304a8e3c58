import { newTokenMembers, readNewToken, type TokenRequest } from '../access/new-tokens.ts'
import { readSettingMembers, settingNames } from '../core/bucket-members.ts'
import { parseBucketListQuery, parseBucketRemovalQuery } from '../core/bucket-queries.ts'
import type { ParameterFault } from '../core/faults.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import { bucketNameRule, isBucketName } from '../core/names.ts'
import { malformed } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { createSerializer } from '../http/dispatcher.ts'
import { matchesStrongly, noStore, parseBearerToken, requireAuthorization } from '../http/headers.ts'
import { parseIdempotencyKey } from '../http/idempotency-key.ts'
import { itemsText, ListTexts, listReply } from '../http/list-texts.ts'
import { BucketList } from '../http/openapi/bucket-schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { BucketDeleter } from './bucket-deletion.ts'
import {
  createBucket,
  createBucketToken,
  type DescribedBucket,
  deleteBucket,
  findBucket,
  type listBucketsOperation,
  requireBucketName,
  setBucket,
} from './bucket-operations.ts'
import * as openapi from './bucket-routes.openapi.ts'

/** The operations that these routes call. */
interface BucketOperations {
  readonly listBuckets: ReturnType<typeof listBucketsOperation>
  readonly deleter: Pick<BucketDeleter, 'delete'>
}

interface BucketParts {
  readonly http: HttpContext
  readonly operations: BucketOperations
  readonly serialize: ReturnType<typeof createSerializer>
}

/** `/api/buckets` (docs/interface.md, Buckets). */
export function bucketRoutes(http: HttpContext, operations: BucketOperations): readonly Route[] {
  const serialize = createSerializer({ schema: BucketList.properties.data })
  const parts = { http, operations, serialize }
  const path = '/api/buckets/:name'
  const readsBody = true
  return [
    route('GET', '/api/buckets', openapi.listBuckets, (exchange) => listBuckets(parts, exchange)),
    route('POST', '/api/buckets', openapi.createBucket, (exchange) => postBucket(http, exchange), {
      readsBody,
    }),
    route('GET', path, openapi.findBucket, (exchange) => showBucket(http, exchange)),
    route('PATCH', path, openapi.setBucket, (exchange) => patchBucket(http, exchange), { readsBody }),
    route('DELETE', path, openapi.deleteBucket, (exchange) => removeBucket(parts, exchange)),
    route(
      'POST',
      `${path}/tokens`,
      openapi.createBucketToken,
      (exchange) => postBucketToken(http, exchange),
      {
        readsBody,
      },
    ),
  ]
}

async function listBuckets(
  { http: { authorizeService, tickQueue }, operations, serialize }: BucketParts,
  exchange: Exchange,
): Promise<Reply> {
  const { tokenId } = await authorizeService(exchange, 'buckets:manage')
  const query = parseBucketListQuery(exchange.query)
  const pause = () => tickQueue.next(tokenId)
  await pause()
  const { buckets, totals, cursorAfter, hasMore } = await operations.listBuckets(query)
  const list = new ListTexts(
    (some: readonly (typeof buckets)[number][]) => itemsText(serialize([...some])),
    pause,
  )
  const added = await list.add(buckets)
  const isCut = added < buckets.length || hasMore
  return listReply(noStore, list.texts, { totals, next_cursor: isCut ? cursorAfter(added - 1) : null })
}

async function showBucket(
  { authorizeService, catalog }: HttpContext,
  exchange: Exchange<'name'>,
): Promise<Reply> {
  await authorizeService(exchange, 'buckets:manage')
  return bucketReply(200, await findBucket(catalog, requireBucketName(exchange.params.name)))
}

const bucketReply = (status: number, { bucket, etag }: DescribedBucket): Reply => ({
  status,
  headers: { ...noStore, etag },
  json: bucket,
})

async function postBucket(
  { readServiceJson, catalog, urls }: HttpContext,
  exchange: Exchange,
): Promise<Reply> {
  const { request } = exchange
  const header = request.headers['idempotency-key']
  const key = header === undefined ? null : parseIdempotencyKey(header.toString())
  const { caller, body } = await readServiceJson(exchange, 'buckets:manage', [
    ...['name', ...settingNames, 'token'],
  ])
  const now = Date.now()
  const created = await createBucket(
    catalog,
    // A repetition may follow the expiry of the first token. Only the catalog knows whether it is one.
    { ...readNewBucket(body, key === null ? now : 0), grantor: caller.tokenId },
    key === null
      ? null
      : {
          tokenId: caller.tokenId,
          key,
          requestToken: parseBearerToken(requireAuthorization(request)),
          content: contentOf(body),
        },
    now,
    caller.actor,
  )
  const { bucket, token, etag } = created
  return {
    status: 201,
    headers: { ...noStore, etag, location: `${urls.baseUrl}/api/buckets/${bucket.name}` },
    json: { ...bucket, token },
  }
}

/** The members of a body in the order of their names, so that a repetition that orders them otherwise is one. */
const contentOf = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) =>
    isObject(member) && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : member,
  )

/** Throws Fault `json-malformed`. */
function readNewBucket(body: JsonObject, earliest: number) {
  const faults: ParameterFault[] = []
  const { name, token = null } = body
  const isNamed = typeof name === 'string' && isBucketName(name)
  if (!isNamed) faults.push({ parameter: 'name', detail: bucketNameRule })
  const settings = readSettingMembers(body, faults)
  const read = token === null ? null : readFirstToken(token, earliest, faults)
  if (!isNamed || read === undefined || faults.length > 0) throw malformed(faults)
  return { name, settings, token: read }
}

/** Undefined, with a fault, for what is no new token. */
function readFirstToken(
  token: unknown,
  earliest: number,
  faults: ParameterFault[],
): TokenRequest | undefined {
  const members: readonly string[] = newTokenMembers
  if (!isObject(token) || Object.keys(token).some((member) => !members.includes(member))) {
    faults.push({ parameter: 'token', detail: `Null, or an object with ${members.join(', ')}.`, members })
    return undefined
  }
  const { request, faults: ofToken } = readNewToken(token, earliest)
  faults.push(...ofToken.map((fault) => ({ ...fault, parameter: `token.${fault.parameter}` })))
  return request ?? undefined
}

/** `If-Match` of a request (RFC 9110, 13.1.1); null without it. */
function tagCondition({ request }: Exchange<'name'>): ((etag: string) => boolean) | null {
  const ifMatch = request.headers['if-match']
  return ifMatch === undefined ? null : (etag) => matchesStrongly(ifMatch, etag)
}

async function patchBucket(
  { readServiceJson, catalog }: HttpContext,
  exchange: Exchange<'name'>,
): Promise<Reply> {
  const { caller, body } = await readServiceJson(exchange, 'buckets:manage', settingNames, openapi.patchTypes)
  const faults: ParameterFault[] = []
  const settings = readSettingMembers(body, faults)
  if (faults.length > 0) throw malformed(faults)
  const changed = await setBucket(
    catalog,
    requireBucketName(exchange.params.name),
    settings,
    tagCondition(exchange),
    Date.now(),
    caller.actor,
  )
  return bucketReply(200, changed)
}

async function removeBucket(
  { http: { authorizeService, catalog }, operations: { deleter } }: BucketParts,
  exchange: Exchange<'name'>,
): Promise<Reply> {
  const { actor } = await authorizeService(exchange, 'buckets:manage')
  const { deletesItems } = parseBucketRemovalQuery(exchange.query)
  await deleteBucket(
    { catalog, deleter },
    requireBucketName(exchange.params.name),
    deletesItems,
    tagCondition(exchange),
    actor,
  )
  return { status: 204 }
}

async function postBucketToken(
  { readServiceJson, catalog }: HttpContext,
  exchange: Exchange<'name'>,
): Promise<Reply> {
  const { caller, body } = await readServiceJson(exchange, 'tokens:manage', newTokenMembers)
  const now = Date.now()
  const { request, faults } = readNewToken(body, now)
  if (request === null) throw malformed(faults)
  const created = await createBucketToken(
    catalog,
    caller,
    requireBucketName(exchange.params.name),
    request,
    now,
    caller.actor,
  )
  return { status: 201, headers: noStore, json: created }
}
