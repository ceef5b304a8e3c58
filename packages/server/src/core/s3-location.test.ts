import { S3Client } from '@aws-sdk/client-s3'
import { expect, test } from 'vitest'
import { createUrlSigner } from '../blobs/s3/sign-url.ts'
import { parseS3Location, storeOriginOf } from './s3-location.ts'

test.each([
  's3://media/files?endpoint=http://127.0.0.1:9000',
  's3://media?endpoint=https://s3.example.org&path_style=false',
  's3://media.example.org?endpoint=https://s3.example.org&path_style=false',
  's3://media/files?region=eu-central-1',
  's3://media?region=us-east-1',
  's3://media.example.org?region=eu-central-1',
])('B12, G2 the origin of the URLs of %s is known before one is signed', async (text) => {
  const location = parseS3Location(text)
  if (!location) throw new Error('the location is valid')
  const { bucket, endpoint, region, pathStyle } = location
  const client = new S3Client({
    ...{ region, forcePathStyle: pathStyle, ...(endpoint !== null && { endpoint }) },
    credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
  })
  const url = await createUrlSigner(client, bucket)('key', null, 3_600_000)
  expect(new URL(url).origin).toBe(storeOriginOf(location))
})
