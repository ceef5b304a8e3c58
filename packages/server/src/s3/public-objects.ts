import { isBucketName } from '../core/names.ts'
import { refuseCodeDestination } from '../http/headers.ts'
import type { S3Context } from './s3-context.ts'
import { S3Error } from './s3-errors.ts'
import type { S3Request } from './s3-request.ts'

/**
 * Sends an object to everybody (docs/interface.md SP11). The error is the same for a bucket or a key that does not exist and for one that is not
 * public.
 */
export async function sendPublicObject(
  { http, operations, responder }: S3Context,
  request: S3Request,
  bucket: string,
  key: string,
): Promise<void> {
  const found = isBucketName(bucket) ? await http.catalog.findListedBucket(bucket) : null
  const object = found?.publicKeys === true ? await operations.objects.findObject(found.id, key) : null
  if (found === null || object?.isPublic !== true) throw new S3Error('AccessDenied')
  refuseCodeDestination(request.request.headers)
  await responder.send(request, found.id, object, null)
}
