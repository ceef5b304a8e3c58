import { createHmac } from 'node:crypto'
import type { RequestTarget } from './request-target.ts'
import { latin1OfUtf8 } from './s3-request.ts'
import { headerValues } from './signature-v4.ts'

// Signature Version 2 of AWS, in URLs only: https://docs.aws.amazon.com/AmazonS3/latest/API/RESTAuthentication.html. boto3 presigns so by default.

/** The parameters that are signed, in the order of their names. */
const signedParameters = [
  ...[
    'accelerate',
    'acl',
    'attributes',
    'cors',
    'delete',
    'encryption',
    'inventory',
    'lifecycle',
    'location',
  ],
  ...['logging', 'metrics', 'notification', 'object-lock', 'partNumber', 'policy', 'policyStatus'],
  ...['replication', 'requestPayment', 'response-cache-control', 'response-content-disposition'],
  ...['response-content-encoding', 'response-content-language', 'response-content-type'],
  ...['response-expires', 'restore', 'retention', 'select', 'select-type', 'tagging', 'torrent', 'uploadId'],
  ...['uploads', 'versionId', 'versioning', 'versions', 'website'],
]

/** The signature of a URL that expires at this time. */
export function signatureV2(
  secret: string,
  { method, rawHeaders }: { readonly method: string; readonly rawHeaders: readonly string[] },
  { path, query, bucket, isVirtual }: RequestTarget,
  expires: string,
): string {
  const headers = headerValues(rawHeaders)
  const amz = [...headers]
    .filter(([name]) => name.startsWith('x-amz-'))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name}:${value}\n`)
    .join('')
  const parameters = signedParameters
    .filter((name) => query.has(name))
    .map((name) => (query.get(name) === '' ? name : `${name}=${latin1OfUtf8(query.get(name) ?? '')}`))
  const resource = `${isVirtual ? `/${bucket}` : ''}${path}${parameters.length > 0 ? `?${parameters.join('&')}` : ''}`
  const text = [
    method,
    headers.get('content-md5') ?? '',
    headers.get('content-type') ?? '',
    expires,
    amz + resource,
  ].join('\n')
  return createHmac('sha1', secret).update(Buffer.from(text, 'latin1')).digest('base64')
}
