import { type ChecksumAlgorithm, checksumAlgorithms, isChecksum } from '../core/checksums.ts'
import { isUploadId } from '../core/ids.ts'
import { formatTimestamp } from '../core/times.ts'
import type { ChecksumType } from '../objects/object-types.ts'
import { isPublicAcl } from './acl.ts'
import { findSource } from './copy-handlers.ts'
import { readDocument } from './documents.ts'
import { encoderOf, readEncoding, readLimit, readMarker } from './list-handlers.ts'
import { checksumElements, checksumHeader, namedAlgorithm, ObjectBody } from './object-body.ts'
import { readConditions } from './object-handlers.ts'
import { readObjectHeaders } from './object-headers.ts'
import { readPartNumber } from './object-response.ts'
import { unlessReplaced } from './replaced-objects.ts'
import {
  type BucketCall,
  type ObjectCall,
  owner,
  type S3Context,
  type S3Handlers,
  type S3Reply,
} from './s3-context.ts'
import { S3Error } from './s3-errors.ts'
import type { S3Request } from './s3-request.ts'
import { slowReply } from './slow-response.ts'
import { childrenOf, childText, type XmlElement } from './xml.ts'

/** Uploads in parts (docs/interface.md SP9). */
export const multipartHandlers: S3Handlers<
  ObjectCall,
  | 'CreateMultipartUpload'
  | 'UploadPart'
  | 'UploadPartCopy'
  | 'CompleteMultipartUpload'
  | 'AbortMultipartUpload'
  | 'ListParts'
> = {
  CreateMultipartUpload: create,
  UploadPart: uploadPart,
  UploadPartCopy: copyPart,
  CompleteMultipartUpload: complete,
  AbortMultipartUpload: abort,
  ListParts: listParts,
}

export const multipartLists: S3Handlers<BucketCall, 'ListMultipartUploads'> = {
  ListMultipartUploads: listUploads,
}

/** The checksum that the object will have, as the client asks for it. Throws S3Error `InvalidRequest`. */
function readChecksum(
  request: S3Request,
): { readonly algorithm: ChecksumAlgorithm; readonly type: ChecksumType } | null {
  const algorithm = namedAlgorithm(request, 'x-amz-checksum-algorithm')
  const stated = request.header('x-amz-checksum-type')?.toUpperCase()
  if (algorithm === null) {
    if (stated !== undefined)
      throw new S3Error('InvalidRequest', 'x-amz-checksum-type needs x-amz-checksum-algorithm.')
    return null
  }
  const type = stated ?? (algorithm === 'CRC64NVME' ? 'FULL_OBJECT' : 'COMPOSITE')
  const isHash = algorithm === 'SHA1' || algorithm === 'SHA256'
  if (type === 'FULL_OBJECT' && !isHash) return { algorithm, type }
  if (type === 'COMPOSITE' && algorithm !== 'CRC64NVME') return { algorithm, type }
  throw new S3Error('InvalidRequest', `The checksum ${algorithm} of an upload in parts cannot be ${type}.`)
}

async function create({ operations: { multiparts } }: S3Context, call: ObjectCall): Promise<S3Reply> {
  const { request, caller, key, bucket } = call
  const checksum = readChecksum(request)
  const id = await multiparts.create(caller, key, {
    headers: readObjectHeaders(request),
    isPublic: isPublicAcl(request, caller),
    checksum,
  })
  return {
    status: 200,
    headers:
      checksum === null
        ? {}
        : { 'x-amz-checksum-algorithm': checksum.algorithm, 'x-amz-checksum-type': checksum.type },
    xml: ['InitiateMultipartUploadResult', { Bucket: bucket, Key: key, UploadId: id }],
  }
}

const uploadIdOf = (request: S3Request): string => request.parameter('uploadId') ?? ''

async function uploadPart(
  { http, operations: { multiparts } }: S3Context,
  call: ObjectCall,
): Promise<S3Reply> {
  const { request, payload, caller, key } = call
  const number = readPartNumber(request.parameter('partNumber'))
  const upload = await multiparts.find(caller, key, uploadIdOf(request))
  const algorithm = upload.checksum?.algorithm ?? null
  const body = new ObjectBody(request, payload, { otherwise: algorithm, isStored: true })
  if (algorithm !== null && body.algorithm !== algorithm)
    throw new S3Error('InvalidRequest', `The upload has checksums of ${algorithm}.`)
  body.requireLength()
  http.metrics.countActiveUpload(request.response)
  let stated: ReturnType<ObjectBody['finish']>['checksum'] = null
  const { etag } = await multiparts.putPart(caller, upload, number, {
    body: body.read(http.readBody),
    size: body.size,
    finish: (sha256) => {
      body.requireSha256(sha256)
      const { md5, checksum } = body.finish()
      stated = checksum
      return {
        etag: md5.toString('hex'),
        checksum: algorithm === null || checksum === null ? null : checksum.value,
      }
    },
  })
  return { status: 200, headers: { etag: `"${etag}"`, ...checksumHeaders(stated) } }
}

const checksumHeaders = (
  checksum: { readonly algorithm: ChecksumAlgorithm; readonly value: string } | null,
) => (checksum === null ? {} : { [checksumHeader(checksum.algorithm)]: checksum.value })

async function copyPart(context: S3Context, call: ObjectCall): Promise<S3Reply | null> {
  const { multiparts } = context.operations
  const { request, caller, key } = call
  const number = readPartNumber(request.parameter('partNumber'))
  const upload = await multiparts.find(caller, key, uploadIdOf(request))
  const copying = unlessReplaced(
    () => findSource(context, call),
    async ({ object, caller: { bucketId } }) => {
      const range = sourceRange(request.header('x-amz-copy-source-range'), object.item.size)
      const part = await multiparts.copyPart(caller, upload, number, { bucketId, object, range })
      return {
        LastModified: formatTimestamp(part.storedAt),
        ETag: `"${part.etag}"`,
        ...(upload.checksum !== null &&
          part.checksum !== null && { [`Checksum${upload.checksum.algorithm}`]: part.checksum }),
      }
    },
  )
  return await slowReply(context, request, 'CopyPartResult', copying)
}

/** `bytes=0-9`, within the object; null for all of it. Throws S3Error `InvalidArgument` and `InvalidRange`. */
function sourceRange(
  header: string | undefined,
  size: number,
): { readonly start: number; readonly end: number } | null {
  if (header === undefined) return null
  const [, first, last] = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(header) ?? []
  const [start, end] = [Number(first), Number(last)]
  if (first === undefined || last === undefined || start > end)
    throw new S3Error('InvalidArgument', 'x-amz-copy-source-range must have the form bytes=0-9.')
  if (end >= size) throw new S3Error('InvalidRange', 'The range is not within the source.')
  return { start, end }
}

async function abort({ operations: { multiparts } }: S3Context, { request, caller, key }: ObjectCall) {
  await multiparts.abort(caller, key, uploadIdOf(request))
  return { status: 204 }
}

/** A part as the client completes the upload with it. */
function readPart(element: XmlElement) {
  const number = childText(element, 'PartNumber')?.trim() ?? ''
  const etag = childText(element, 'ETag')
    ?.trim()
    .replace(/^"(.*)"$/, '$1')
  if (!/^\d{1,5}$/.test(number) || etag === undefined) throw new S3Error('MalformedXML')
  const [checksum, ...others] = checksumAlgorithms.flatMap((algorithm) => {
    const value = childText(element, `Checksum${algorithm}`)?.trim()
    return value === undefined ? [] : [{ algorithm, value }]
  })
  if (others.length > 0 || (checksum !== undefined && !isChecksum(checksum.algorithm, checksum.value)))
    throw new S3Error('MalformedXML', 'A part has one valid checksum at most.')
  return { number: Number(number), etag, ...(checksum && { checksum: checksum.value }) }
}

/** SDKs name the algorithm in this header where the checksum is that of the document; otherwise it is that of the object. */
const hasOwnChecksum = (request: S3Request): boolean =>
  request.header('x-amz-sdk-checksum-algorithm') !== undefined

/** What the client expects of the object. Throws S3Error `InvalidRequest`. */
function readExpected(request: S3Request) {
  const [checksum, ...others] = checksumAlgorithms.flatMap((algorithm) => {
    const value = hasOwnChecksum(request) ? undefined : request.header(checksumHeader(algorithm))
    return value === undefined ? [] : [{ algorithm, value }]
  })
  if (others.length > 0) throw new S3Error('InvalidRequest', 'A request has one checksum at most.')
  const type = request.header('x-amz-checksum-type')?.toUpperCase()
  const size = request.header('x-amz-mp-object-size')
  if (size !== undefined && !/^\d{1,15}$/.test(size))
    throw new S3Error('InvalidRequest', 'x-amz-mp-object-size must be a number of bytes.')
  return {
    ...(checksum !== undefined && { checksum }),
    ...(type !== undefined && { type }),
    ...(size !== undefined && { size: Number(size) }),
  }
}

async function complete(context: S3Context, call: ObjectCall): Promise<S3Reply | null> {
  const { request, caller, key, bucket } = call
  const conditions = readConditions(request)
  const expected = readExpected(request)
  const document = await readDocument(context, call, 'CompleteMultipartUpload', {
    isChecked: hasOwnChecksum(request),
  })
  const parts = childrenOf(document, 'Part').map(readPart)
  if (parts.length === 0 || parts.length > 10_000)
    throw new S3Error('MalformedXML', 'An upload has 1 to 10,000 parts.')
  const options = { parts, conditions, expected }
  const completing = context.operations.multiparts
    .complete(caller, key, uploadIdOf(request), options)
    .then(({ etag, headers: { checksum } }) => ({
      Location: locationOf(context, request),
      ...{ Bucket: bucket, Key: key, ETag: `"${etag}"` },
      ...checksumElements(checksum),
    }))
  return await slowReply(context, request, 'CompleteMultipartUploadResult', completing)
}

/** The proxy in front of both ports has the same scheme for both. */
const locationOf = ({ http: { settings } }: S3Context, { request, target }: S3Request): string =>
  `${new URL(settings.baseUrl).protocol}//${request.headers.host}${target.path}`

async function listParts({ operations: { multiparts } }: S3Context, call: ObjectCall): Promise<S3Reply> {
  const { request, caller, key, bucket } = call
  const limit = readLimit(request.parameter('max-parts'), 'max-parts')
  const after = readMarker(request.parameter('part-number-marker'), 'part-number-marker')
  const id = uploadIdOf(request)
  const { upload, parts, isTruncated } = await multiparts.listParts(caller, key, id, { after, limit })
  const { checksum } = upload
  return {
    status: 200,
    xml: [
      'ListPartsResult',
      {
        ...{
          Bucket: bucket,
          Key: key,
          UploadId: upload.id,
          Initiator: owner,
          Owner: owner,
          StorageClass: 'STANDARD',
        },
        ...(checksum && { ChecksumAlgorithm: checksum.algorithm, ChecksumType: checksum.type }),
        PartNumberMarker: after,
        NextPartNumberMarker: parts.at(-1)?.number ?? after,
        MaxParts: limit,
        IsTruncated: isTruncated,
        Part: parts.map((part) => ({
          PartNumber: part.number,
          LastModified: formatTimestamp(part.storedAt),
          ETag: `"${part.etag}"`,
          Size: part.size,
          ...(checksum && part.checksum !== null && { [`Checksum${checksum.algorithm}`]: part.checksum }),
        })),
      },
    ],
  }
}

async function listUploads({ operations: { multiparts } }: S3Context, call: BucketCall): Promise<S3Reply> {
  const { request, caller, bucket } = call
  const encoding = readEncoding(request)
  const encode = encoderOf(encoding)
  const prefix = request.parameter('prefix') ?? ''
  const delimiter = request.parameter('delimiter') || null
  const keyMarker = request.parameter('key-marker') ?? ''
  const idMarker = request.parameter('upload-id-marker') ?? ''
  const limit = readLimit(request.parameter('max-uploads'), 'max-uploads')
  const { uploads, prefixes, isTruncated, next } = await multiparts.list(caller, {
    ...{ prefix, delimiter, limit },
    after: keyMarker === '' ? null : placeOf(keyMarker, idMarker, prefix, delimiter),
  })
  return {
    status: 200,
    xml: [
      'ListMultipartUploadsResult',
      {
        ...{ Bucket: bucket, KeyMarker: encode(keyMarker), UploadIdMarker: idMarker },
        NextKeyMarker: next === null ? undefined : encode(next.key),
        NextUploadIdMarker: next?.id ?? undefined,
        ...{ Prefix: encode(prefix), Delimiter: delimiter === null ? undefined : encode(delimiter) },
        ...{ EncodingType: encoding, MaxUploads: limit, IsTruncated: isTruncated },
        Upload: uploads.map(({ key, id, createdAt }) => ({
          ...{ Key: encode(key), UploadId: id, Initiator: owner, Owner: owner },
          ...{ StorageClass: 'STANDARD', Initiated: formatTimestamp(createdAt) },
        })),
        CommonPrefixes: prefixes.map((common) => ({ Prefix: encode(common) })),
      },
    ],
  }
}

/** Where a list goes on: after an upload, after all uploads of a key, or after all keys with a common prefix. */
function placeOf(key: string, id: string, prefix: string, delimiter: string | null) {
  const isPrefix =
    delimiter !== null && key.startsWith(prefix) && key.length > prefix.length && key.endsWith(delimiter)
  return { key, id: isUploadId(id) ? id : null, isPrefix: isPrefix && id === '' }
}
