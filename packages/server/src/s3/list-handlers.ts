import type { ObjectList } from '../objects/object-operations.ts'
import { entryText } from './list-entries.ts'
import type { BucketCall, S3Context, S3Handlers, S3Reply } from './s3-context.ts'
import { S3Error } from './s3-errors.ts'
import type { S3Request } from './s3-request.ts'
import { encodeValue } from './signature-v4.ts'
import { XmlText } from './xml.ts'

/** Keys of one page at most. */
const maxKeys = 1_000

/** The lists of keys (docs/interface.md SP6). */
export const listHandlers: S3Handlers<BucketCall, 'ListObjects' | 'ListObjectsV2' | 'ListObjectVersions'> = {
  ListObjects: listV1,
  ListObjectsV2: listV2,
  ListObjectVersions: listVersions,
}

/** What the lists need of a request. */
interface ListCall extends Pick<BucketCall, 'request' | 'bucket'> {
  readonly caller: Pick<BucketCall['caller'], 'bucketId'>
  /** Whether everybody may send it: the keys of items that were stored without one have the ids that are their URLs. */
  readonly isPublic?: boolean
}

/** A list for everybody (docs/interface.md SP12). */
export async function listPublicly(
  context: S3Context,
  name: 'ListObjects' | 'ListObjectsV2',
  call: Omit<ListCall, 'isPublic'>,
): Promise<S3Reply> {
  const list = name === 'ListObjects' ? listV1 : listV2
  const reply = await list(context, { ...call, isPublic: true })
  return { ...reply, headers: { 'cache-control': 'no-cache' } }
}

/** What both versions have. */
interface ListQuery {
  readonly prefix: string
  readonly delimiter: string | null
  readonly limit: number
  /** Writes a key, as the client has asked for. */
  readonly encode: (key: string) => string
  readonly encoding: string | undefined
}

function readListQuery(request: S3Request): ListQuery {
  const encoding = readEncoding(request)
  return {
    prefix: request.parameter('prefix') ?? '',
    delimiter: request.parameter('delimiter') || null,
    limit: readLimit(request.parameter('max-keys'), 'max-keys'),
    ...{ encoding, encode: encoderOf(encoding) },
  }
}

/** Throws S3Error `InvalidArgument`. */
export function readEncoding(request: S3Request): 'url' | undefined {
  const encoding = request.parameter('encoding-type')
  if (encoding !== undefined && encoding !== '' && encoding !== 'url')
    throw new S3Error('InvalidArgument', 'encoding-type must be url.')
  return encoding === 'url' ? 'url' : undefined
}

/** Keys can have characters that XML 1.0 has not. Slashes stay, as in S3. */
export const encoderOf =
  (encoding: 'url' | undefined) =>
  (text: string): string =>
    encoding === 'url' && !unencoded.test(text) ? encodeValue(text).replaceAll('%2F', '/') : text

/** Most keys have only characters that an encoding leaves. */
const unencoded = /^[\w.~/-]*$/

/** As S3, whose clients decode the prefix of Version 1 or do not: only what both read alike is not encoded. */
const plainPrefix = ({ prefix, encode }: ListQuery): string =>
  prefix.replace(specialInPrefix, (character) => encode(character))

// biome-ignore lint/suspicious/noControlCharactersInRegex: XML has none of them
const specialInPrefix = /[%+\x00-\x08\x0b-\x1f\x7f]/g

/** Throws S3Error `InvalidArgument`. */
export function readLimit(text: string | undefined, name: string): number {
  if (text === undefined || text === '') return maxKeys
  if (!/^\d{1,10}$/.test(text)) throw new S3Error('InvalidArgument', `${name} must be a whole number from 0.`)
  return Math.min(Number(text), maxKeys)
}

/** The number after which a list of parts begins. Throws S3Error `InvalidArgument`. */
export function readMarker(text: string | undefined, name: string): number {
  if (!/^\d{0,9}$/.test(text ?? ''))
    throw new S3Error('InvalidArgument', `${name} must be a whole number from 0.`)
  return Number(text ?? '')
}

async function find(
  { operations }: S3Context,
  { caller, isPublic: isKeyedOnly = false }: ListCall,
  query: ListQuery,
  after: string | null,
) {
  const { prefix, delimiter, limit } = query
  return await operations.objects.listObjects(caller.bucketId, {
    ...{ prefix, delimiter, after, limit, isKeyedOnly },
  })
}

const contentsOf = ({ encode }: ListQuery, { objects }: ObjectList, hasOwner: boolean): readonly XmlText[] =>
  objects.map((object) => entryText(encode(object.key), object, hasOwner))

const commonOf = (
  { bucket }: ListCall,
  { prefix, delimiter, limit, encode, encoding }: ListQuery,
  { prefixes, isTruncated }: ObjectList,
) => ({
  head: {
    Name: bucket,
    Prefix: encode(prefix),
    Delimiter: delimiter === null ? undefined : encode(delimiter),
    MaxKeys: limit,
    EncodingType: encoding,
    IsTruncated: isTruncated,
  },
  tail: { CommonPrefixes: prefixes.map((common) => ({ Prefix: encode(common) })) },
})

async function listV1(context: S3Context, call: ListCall) {
  const query = readListQuery(call.request)
  const marker = call.request.parameter('marker') ?? ''
  const list = await find(context, call, query, marker === '' ? null : marker)
  const { head, tail } = commonOf(call, query, list)
  return {
    status: 200,
    xml: [
      'ListBucketResult',
      {
        ...head,
        Prefix: plainPrefix(query),
        Marker: query.encode(marker),
        // As S3, which leaves it out without a delimiter: the last key is the marker then.
        NextMarker: query.delimiter !== null && list.next !== null ? query.encode(list.next) : undefined,
        Contents: contentsOf(query, list, true),
        ...tail,
      },
    ],
  } as const
}

async function listV2(context: S3Context, call: ListCall) {
  const { request } = call
  const query = readListQuery(request)
  const token = request.parameter('continuation-token')
  const start = request.parameter('start-after')
  const after = token === undefined || token === '' ? start || null : placeOf(token)
  const list = await find(context, call, query, after)
  const { head, tail } = commonOf(call, query, list)
  const hasOwner = request.parameter('fetch-owner') === 'true'
  return {
    status: 200,
    xml: [
      'ListBucketResult',
      {
        ...head,
        KeyCount: list.objects.length + list.prefixes.length,
        ContinuationToken: token,
        NextContinuationToken: list.next === null ? undefined : tokenOf(list.next),
        StartAfter: start === undefined ? undefined : query.encode(start),
        Contents: contentsOf(query, list, hasOwner),
        ...tail,
      },
    ],
  } as const
}

/** Each object has one version, as in a bucket of S3 that never had versions. */
async function listVersions(context: S3Context, call: ListCall) {
  const query = readListQuery(call.request)
  const marker = call.request.parameter('key-marker') ?? ''
  const list = await find(context, call, query, marker === '' ? null : marker)
  const { head, tail } = commonOf(call, query, list)
  return {
    status: 200,
    xml: [
      'ListVersionsResult',
      {
        ...head,
        KeyMarker: query.encode(marker),
        ...(list.next !== null && { NextKeyMarker: query.encode(list.next), NextVersionIdMarker: 'null' }),
        Version: contentsOf(query, list, true).map(
          ({ xml }) => new XmlText(`${xml}<VersionId>null</VersionId><IsLatest>true</IsLatest>`),
        ),
        ...tail,
      },
    ],
  } as const
}

/** A key may have characters that XML has not, also without an encoding. */
const tokenOf = (place: string): string => Buffer.from(place).toString('base64url')

function placeOf(token: string): string {
  const place = Buffer.from(token, 'base64url').toString()
  if (tokenOf(place) !== token) throw new S3Error('InvalidArgument', 'The continuation token is malformed.')
  return place
}
