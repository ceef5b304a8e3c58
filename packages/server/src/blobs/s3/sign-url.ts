import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import type { SignedHeaders } from '../blobs.ts'
import { asStoreFault } from './s3-errors.ts'

/** Signs URLs of objects, for `RemoteContent.signUrl`. Throws Fault `storage-unavailable` if there are no credentials. */
export function createUrlSigner(
  client: S3Client,
  bucket: string,
): (key: string, headers: SignedHeaders | null, lifetime: number) => Promise<string> {
  return async (key, headers, lifetime) => {
    const now = Date.now()
    const command = new GetObjectCommand({
      Bucket: bucket,
      Key: key,
      ...(headers && {
        ResponseContentType: headers.contentType,
        ResponseContentDisposition: headers.contentDisposition,
        ResponseCacheControl: headers.cacheControl,
      }),
    })
    // Equal URLs for half of the lifetime, so that browsers can cache what they return.
    const options = { expiresIn: lifetime / 1_000, signingDate: new Date(now - (now % (lifetime / 2))) }
    return await getSignedUrl(client, command, options).catch((error: unknown) => {
      throw asStoreFault(error)
    })
  }
}
