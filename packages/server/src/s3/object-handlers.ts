import type { ObjectConditions, StoredObject } from '../objects/object-operations.ts'
import type { ObjectHeaders, ObjectPart } from '../objects/object-types.ts'
import type { Item } from '../storage/catalog/records.ts'
import { aclDocument, isPublicAcl, readAcl, requirePublicKeys } from './acl.ts'
import { readDocument } from './documents.ts'
import { readLimit, readMarker } from './list-handlers.ts'
import { checksumElements, checksumHeader, ObjectBody } from './object-body.ts'
import { readObjectHeaders } from './object-headers.ts'
import type { BucketCall, ObjectCall, S3Context, S3Handlers } from './s3-context.ts'
import { errorOf, S3Error } from './s3-errors.ts'
import type { S3Request } from './s3-request.ts'
import { childrenOf, childText } from './xml.ts'

export const objectHandlers: S3Handlers<
  ObjectCall,
  | 'GetObject'
  | 'HeadObject'
  | 'PutObject'
  | 'DeleteObject'
  | 'GetObjectAttributes'
  | 'GetObjectAcl'
  | 'GetObjectTagging'
  | 'PutObjectAcl'
> = {
  GetObject: getObject,
  HeadObject: getObject,
  PutObject: putObject,
  DeleteObject: deleteObject,
  GetObjectAttributes: getAttributes,
  GetObjectAcl: getAcl,
  GetObjectTagging: getTagging,
  PutObjectAcl: putAcl,
}

/** Throws S3Error `NoSuchKey`. */
async function requireObject(
  { operations: { objects } }: S3Context,
  { caller, key }: Pick<ObjectCall, 'caller' | 'key'>,
): Promise<StoredObject<Item>> {
  const found = await objects.findObject(caller.bucketId, key)
  if (found === null) throw new S3Error('NoSuchKey')
  return found
}

async function getObject(context: S3Context, call: ObjectCall): Promise<null> {
  const { request, caller } = call
  const find = async () => ({ object: await requireObject(context, call) })
  await context.responder.send(request, caller.bucketId, find, { by: 'token', actor: caller.actor })
  return null
}

/** The conditions of a request that writes. Throws S3Error `NotImplemented` for those that S3 has not. */
export function readConditions({ request: { headers } }: S3Request): ObjectConditions {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  if (headers['if-modified-since'] !== undefined || headers['if-unmodified-since'] !== undefined)
    throw new S3Error('NotImplemented', 'Conditions of writes are If-Match and If-None-Match.')
  return {
    ...(ifMatch !== undefined && { ifMatch: tagOf(ifMatch) }),
    ...(ifNoneMatch !== undefined && { ifNoneMatch: tagOf(ifNoneMatch) }),
  }
}

/** `*`, or an entity tag without quotes. Throws S3Error `NotImplemented` for several, and for a weak one. */
function tagOf(header: string): string {
  const tag = header.trim().replace(/^"(.*)"$/, '$1')
  if (/[",]/.test(tag)) throw new S3Error('NotImplemented', 'A condition of a write is one entity tag, or *.')
  return tag
}

/** The headers of a response about a stored object. */
function storedHead({ etag, headers: { checksum } }: Pick<StoredObject, 'etag' | 'headers'>) {
  return {
    etag: `"${etag}"`,
    ...(checksum && {
      [checksumHeader(checksum.algorithm)]: checksum.value,
      'x-amz-checksum-type': checksum.type,
    }),
  }
}

async function putObject({ http, operations }: S3Context, call: ObjectCall) {
  const { request, payload, caller, key } = call
  const headers = readObjectHeaders(request)
  const isPublic = isPublicAcl(request, caller)
  const conditions = readConditions(request)
  const body = new ObjectBody(request, payload, { isStored: true })
  body.requireLength()
  http.metrics.countActiveUpload(request.response)
  const stored = await operations.objects.putObject(caller, key, {
    body: await bytesOf(http, request, body),
    size: body.size,
    ...{ isPublic, conditions, declaredType: headers.contentType ?? null },
    check: (sha256) => body.requireSha256(sha256),
    finish: () => {
      const { md5, checksum } = body.finish()
      const stated: ObjectHeaders =
        checksum === null ? headers : { ...headers, checksum: { ...checksum, type: 'FULL_OBJECT' } }
      return { etag: md5.toString('hex'), headers: stated }
    },
  })
  return { status: 200, headers: storedHead(stored) }
}

/** The bytes of a small body, which take less work when they are read at once; a stream of all others. */
async function bytesOf(
  { readBody, readWholeBody, settings }: S3Context['http'],
  request: S3Request,
  body: ObjectBody,
): Promise<Uint8Array | AsyncIterable<Uint8Array>> {
  const { headers } = request.request
  const length = Number(headers['content-length'] ?? Number.NaN)
  // With `Expect` the client sends the body only if the quota allows it.
  if (length > 0 && length <= settings.inlineSize && headers.expect === undefined) {
    const bytes = await body.readWhole(readWholeBody)
    if (bytes !== null) return bytes
  }
  return body.read(readBody)
}

async function deleteObject({ http, operations }: S3Context, { request, caller, key }: ObjectCall) {
  http.metrics.deletedItems.inc(await operations.objects.deleteObject(caller, key, readConditions(request)))
  return { status: 204 }
}

const noConditions: ObjectConditions = {}

/** Keys of one request at most. */
const maxKeys = 1_000

/** Deletes many keys. Each has a result of its own. */
export async function deleteObjects(context: S3Context, call: BucketCall) {
  const document = await readDocument(context, call, 'Delete')
  const isQuiet = childText(document, 'Quiet')?.trim().toLowerCase() === 'true'
  const sent = childrenOf(document, 'Object')
  if (sent.length === 0 || sent.length > maxKeys)
    throw new S3Error('MalformedXML', `Delete has 1 to ${maxKeys} keys.`)
  const keys = sent.map((object) => {
    const key = childText(object, 'Key')
    if (key === undefined || key === '') throw new S3Error('MalformedXML')
    const version = childText(object, 'VersionId')
    if (version !== undefined && version !== 'null')
      throw new S3Error('NotImplemented', 'The service has no versions.')
    if (childText(object, 'Size') !== undefined || childText(object, 'LastModifiedTime') !== undefined)
      throw new S3Error('NotImplemented', 'The only condition of a deletion is the ETag.')
    const etag = childText(object, 'ETag')
    return { key, conditions: etag === undefined ? noConditions : { ifMatch: tagOf(etag) } }
  })
  const { objects } = context.operations
  const { deletedItems } = context.http.metrics
  if (keys.every(({ conditions }) => conditions.ifMatch === undefined)) {
    const all = keys.map(({ key }) => key)
    deletedItems.inc(await objects.deleteObjects(call.caller, all))
    return { status: 200, xml: ['DeleteResult', deletedOf(all, isQuiet)] } as const
  }
  const deleted: string[] = []
  const failed: { readonly Key: string; readonly Code: string; readonly Message: string }[] = []
  for (const { key, conditions } of keys) {
    try {
      deletedItems.inc(await objects.deleteObject(call.caller, key, conditions))
      deleted.push(key)
    } catch (error) {
      const { code, message } = errorOf(error, (unknown) => context.reportFault(unknown, call.request))
      failed.push({ Key: key, Code: code, Message: message })
    }
  }
  return {
    status: 200,
    xml: ['DeleteResult', { ...deletedOf(deleted, isQuiet), Error: failed }],
  } as const
}

const deletedOf = (keys: readonly string[], isQuiet: boolean) => ({
  Deleted: isQuiet ? undefined : keys.map((Key) => ({ Key })),
})

async function getAttributes(context: S3Context, call: ObjectCall) {
  const { request } = call
  const wanted = new Set(
    (request.header('x-amz-object-attributes') ?? '').split(',').map((name) => name.trim()),
  )
  const known = ['ETag', 'Checksum', 'ObjectParts', 'StorageClass', 'ObjectSize']
  if (wanted.size === 0 || ![...wanted].every((name) => known.includes(name)))
    throw new S3Error('InvalidArgument', `x-amz-object-attributes has names of ${known.join(', ')}.`)
  const { etag, item, parts, headers, lastModified } = await requireObject(context, call)
  const { checksum } = headers
  return {
    status: 200,
    headers: { 'last-modified': new Date(lastModified).toUTCString() },
    xml: [
      'GetObjectAttributesResponse',
      {
        ETag: wanted.has('ETag') ? etag : undefined,
        Checksum: wanted.has('Checksum') && checksum ? checksumElements(checksum) : undefined,
        ObjectParts:
          wanted.has('ObjectParts') && parts !== null ? partsOf(request, parts, checksum) : undefined,
        StorageClass: wanted.has('StorageClass') ? 'STANDARD' : undefined,
        ObjectSize: wanted.has('ObjectSize') ? item.size : undefined,
      },
    ],
  } as const
}

function partsOf(request: S3Request, parts: readonly ObjectPart[], checksum: ObjectHeaders['checksum']) {
  const limit = readLimit(request.header('x-amz-max-parts'), 'x-amz-max-parts')
  const after = readMarker(request.header('x-amz-part-number-marker'), 'x-amz-part-number-marker')
  const listed = parts.slice(after, after + limit)
  // Without parts, as max-parts 0 asks for, the next marker would never move.
  const isCut = listed.length > 0 && after + listed.length < parts.length
  return {
    PartsCount: parts.length,
    PartNumberMarker: after,
    NextPartNumberMarker: after + listed.length,
    MaxParts: limit,
    IsTruncated: isCut,
    Part: listed.map((part, index) => ({
      ...{ PartNumber: after + index + 1, Size: part.size },
      ...(checksum && { [`Checksum${checksum.algorithm}`]: part.checksum }),
    })),
  }
}

async function getAcl(context: S3Context, call: ObjectCall) {
  return { status: 200, xml: aclDocument(await requireObject(context, call)) } as const
}

/** Objects have no tags. The aws command line asks for those of each large object that it copies. */
async function getTagging(context: S3Context, call: ObjectCall) {
  await requireObject(context, call)
  return { status: 200, xml: ['Tagging', { TagSet: '' }] } as const
}

async function putAcl(context: S3Context, call: ObjectCall) {
  const isPublic = await readAcl(context, call)
  if (isPublic) requirePublicKeys(call.caller)
  await context.operations.objects.setPublic(call.caller, call.key, isPublic)
  return { status: 200 }
}
