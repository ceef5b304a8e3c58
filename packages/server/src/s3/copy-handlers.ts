import { isBucketName } from '../core/names.ts'
import { formatTimestamp } from '../core/times.ts'
import { requireScope } from '../core/token-rules.ts'
import type { Caller } from '../http/authorizer.ts'
import { checkPreconditions } from '../http/headers.ts'
import type { CopyOptions, StoredObject } from '../objects/object-operations.ts'
import { isPublicAcl } from './acl.ts'
import { refuseBucket } from './bucket-handlers.ts'
import { checksumElements, namedAlgorithm } from './object-body.ts'
import { readConditions } from './object-handlers.ts'
import { readObjectHeaders } from './object-headers.ts'
import { quoted } from './object-response.ts'
import { unlessReplaced } from './replaced-objects.ts'
import { decodePath } from './request-target.ts'
import type { ObjectCall, S3Context, S3Handlers } from './s3-context.ts'
import { S3Error } from './s3-errors.ts'
import { slowReply } from './slow-response.ts'

export const copyHandlers: S3Handlers<ObjectCall, 'CopyObject'> = { CopyObject: copyObject }

/** The object that a request copies, and the bucket in which it is. */
export interface CopySource {
  readonly caller: Caller
  readonly bucket: string
  readonly object: StoredObject
}

/**
 * Finds the object that the request names as its source, in any bucket that the access key reaches. Throws S3Error `NoSuchBucket`, `NoSuchKey`,
 * `AccessDenied` and `PreconditionFailed`, and Fault `scope-missing`.
 */
export async function findSource({ http, operations }: S3Context, call: ObjectCall): Promise<CopySource> {
  const { request, grant, actor } = call
  requireScope(grant, 'media:read')
  const { bucket, key } = parseSource(request.header('x-amz-copy-source') ?? '')
  let { caller } = call
  if (bucket !== call.bucket) {
    const other = await operations.accessKeys.refresh(grant.tokenId, isBucketName(bucket) ? bucket : null)
    caller = { ...(other.ofBucket ?? (await refuseBucket(http, grant, bucket))), actor }
  }
  const object = await operations.objects.findObject(caller.bucketId, key)
  if (object === null) throw new S3Error('NoSuchKey')
  const condition = (name: string) => request.header(`x-amz-copy-source-${name}`)
  const outcome = checkPreconditions(
    {
      'if-match': quoted(condition('if-match')),
      'if-none-match': quoted(condition('if-none-match')),
      'if-modified-since': condition('if-modified-since'),
      'if-unmodified-since': condition('if-unmodified-since'),
    },
    { etag: `"${object.etag}"`, lastModified: object.lastModified },
  )
  if (outcome !== 'proceed') throw new S3Error('PreconditionFailed')
  return { caller, bucket, object }
}

/** Parses `/bucket/key`, percent-encoded. Throws S3Error `InvalidArgument` and `NotImplemented`. */
function parseSource(header: string): { readonly bucket: string; readonly key: string } {
  const [path = '', version] = header.split('?', 2)
  if (version !== undefined && version !== 'versionId=null')
    throw new S3Error('NotImplemented', 'The service has no versions.')
  const decoded = decodePath(path).replace(/^\//, '')
  const slash = decoded.indexOf('/')
  if (slash < 1 || slash === decoded.length - 1)
    throw new S3Error('InvalidArgument', 'x-amz-copy-source must have the form /bucket/key.')
  return { bucket: decoded.slice(0, slash), key: decoded.slice(slash + 1) }
}

async function copyObject(context: S3Context, call: ObjectCall) {
  const { request, caller } = call
  const directive = request.header('x-amz-metadata-directive') ?? 'COPY'
  if (directive !== 'COPY' && directive !== 'REPLACE')
    throw new S3Error('InvalidArgument', 'x-amz-metadata-directive must be COPY or REPLACE.')
  const options = {
    headers: directive === 'REPLACE' ? readObjectHeaders(request) : null,
    algorithm: namedAlgorithm(request, 'x-amz-checksum-algorithm'),
    isPublic: isPublicAcl(request, caller),
    conditions: readConditions(request),
  }
  const copying = unlessReplaced(
    () => findSource(context, call),
    (source) => copyFrom(context, call, source, options),
  )
  return await slowReply(context, request, 'CopyObjectResult', copying)
}

async function copyFrom(
  { operations }: S3Context,
  { caller, key, bucket }: ObjectCall,
  source: CopySource,
  options: CopyOptions,
) {
  const isSame = source.bucket === bucket && source.object.key === key
  if (isSame && options.headers === null)
    throw new S3Error(
      'InvalidRequest',
      'The request copies an object to itself without changing its metadata. Send x-amz-metadata-directive: REPLACE.',
    )
  if (isSame && options.algorithm !== null)
    throw new S3Error('NotImplemented', 'A copy of an object to itself keeps its checksum.')
  const copied = await operations.objects.copyObject(
    caller,
    { bucketId: source.caller.bucketId, object: source.object },
    key,
    options,
  )
  return {
    LastModified: formatTimestamp(copied.lastModified),
    ETag: `"${copied.etag}"`,
    ...checksumElements(copied.headers.checksum),
  }
}
