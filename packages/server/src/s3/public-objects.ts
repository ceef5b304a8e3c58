import { refuseCodeDestination } from '../http/headers.ts'
import type { ListedBucket } from '../storage/catalog/bucket-list.ts'
import type { S3Context } from './s3-context.ts'
import { S3Error } from './s3-errors.ts'
import type { S3Request } from './s3-request.ts'

/** Sends an object to everybody (docs/interface.md SP11). In a bucket without public keys, nobody learns which keys it has. */
export async function sendPublicObject(
  { operations, responder }: S3Context,
  request: S3Request,
  { id, publicKeys }: ListedBucket,
  key: string,
): Promise<void> {
  if (!publicKeys) throw new S3Error('AccessDenied')
  const find = async () => {
    const object = await operations.objects.findObject(id, key)
    if (object === null) throw new S3Error('NoSuchKey')
    if (!object.isPublic) throw new S3Error('AccessDenied')
    refuseCodeDestination(request.request.headers)
    return { object }
  }
  await responder.send(request, id, find, null)
}
