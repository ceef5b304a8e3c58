// @aws-sdk/client-s3, lib-storage and s3-request-presigner, with the checksums that they send by default.
import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { big, bucket, clientOptions, md5, notes, refuses, same, withoutUrl } from './files.js'

const isOld = process.env.OLD_GATEWAY === '1'
// A gateway of 2021 knows no checksums in trailers.
const client = new S3Client({
  ...clientOptions,
  ...(isOld && { requestChecksumCalculation: 'WHEN_REQUIRED', responseChecksumValidation: 'WHEN_REQUIRED' }),
})
const send = (Command, input) => client.send(new Command({ Bucket: bucket, ...input }))
const bytesOf = async (response) => Buffer.from(await response.Body.transformToByteArray())

// Metadata and headers.
const key = "notes/Größe & so+on ?#%'()!*.txt"
const put = await send(PutObjectCommand, {
  Key: key,
  Body: notes,
  ContentType: 'text/plain; charset=utf-8',
  CacheControl: 'max-age=60',
  Metadata: { color: 'blue', name: 'value with  spaces' },
})
assert.equal(put.ETag, `"${md5(notes)}"`)
const got = await send(GetObjectCommand, { Key: key })
same(await bytesOf(got), notes)
assert.deepEqual(
  [got.ETag, got.ContentType, got.CacheControl],
  [put.ETag, 'text/plain; charset=utf-8', 'max-age=60'],
)
assert.deepEqual(got.Metadata, { color: 'blue', name: 'value with  spaces' })
const url = (await send(HeadObjectCommand, { Key: key })).Metadata['mediabucket-url']
if (!isOld) same(Buffer.from(await (await fetch(url)).arrayBuffer()), notes)
assert.ok(Math.abs(got.LastModified - Date.now()) < 600_000)

// A stream, each algorithm of checksums, and one that is wrong.
await send(PutObjectCommand, {
  Key: 'stream.bin',
  Body: createReadStream('files/big.bin'),
  ContentLength: big.length,
})
same(await bytesOf(await send(GetObjectCommand, { Key: 'stream.bin' })), big)
if (!isOld)
  for (const algorithm of ['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256']) {
    const Key = `checksums/${algorithm}`
    const stored = await send(PutObjectCommand, { Key, Body: notes, ChecksumAlgorithm: algorithm })
    const member = `Checksum${algorithm}`
    assert.ok(stored[member], `${algorithm} is not returned`)
    const head = await send(HeadObjectCommand, { Key, ChecksumMode: 'ENABLED' })
    assert.deepEqual([head[member], head.ChecksumType], [stored[member], 'FULL_OBJECT'])
    // The SDK verifies the checksum of what it reads.
    same(await bytesOf(await send(GetObjectCommand, { Key, ChecksumMode: 'ENABLED' })), notes)
    const wrong = {
      Key: `${Key}-wrong`,
      Body: notes,
      [member]: Buffer.alloc(Buffer.from(stored[member], 'base64').length).toString('base64'),
    }
    await refuses('BadDigest', send(PutObjectCommand, wrong))
    await refuses('NotFound', send(HeadObjectCommand, { Key: wrong.Key }))
    const large = createReadStream('files/big.bin')
    await send(PutObjectCommand, {
      Key,
      Body: large,
      ContentLength: big.length,
      ChecksumAlgorithm: algorithm,
    })
    same(await bytesOf(await send(GetObjectCommand, { Key, ChecksumMode: 'ENABLED' })), big)
  }

// Conditions and ranges.
if (!isOld) {
  await refuses('PreconditionFailed', send(PutObjectCommand, { Key: key, Body: 'other', IfNoneMatch: '*' }))
  await refuses('PreconditionFailed', send(PutObjectCommand, { Key: key, Body: 'other', IfMatch: '"other"' }))
  await send(PutObjectCommand, { Key: 'new.txt', Body: 'new', IfNoneMatch: '*' })
  const racing = await Promise.allSettled(
    Array.from({ length: 8 }, (_, at) =>
      send(PutObjectCommand, { Key: 'race.txt', Body: `${at}`, IfNoneMatch: '*' }),
    ),
  )
  assert.equal(racing.filter(({ status }) => status === 'fulfilled').length, 1)
  await send(DeleteObjectCommand, { Key: 'race.txt' })
  await send(DeleteObjectCommand, { Key: 'new.txt' })
}
await refuses(
  '304',
  send(GetObjectCommand, { Key: key, IfNoneMatch: put.ETag }).catch(({ $metadata }) =>
    Promise.reject(new Error(`${$metadata.httpStatusCode}`)),
  ),
)
const range = await send(GetObjectCommand, { Key: 'stream.bin', Range: 'bytes=1000-1999' })
same(await bytesOf(range), big.subarray(1000, 2000))
assert.equal(range.ContentRange, `bytes 1000-1999/${big.length}`)
await refuses('InvalidRange', send(GetObjectCommand, { Key: key, Range: 'bytes=1000000-' }))

// Multipart uploads of a stream of unknown length.
const upload = new Upload({
  client,
  params: {
    Bucket: bucket,
    Key: 'upload.bin',
    Body: Readable.from([big.subarray(0, 7_000_000), big.subarray(7_000_000)], { objectMode: false }),
    Metadata: { kind: 'multipart' },
  },
  queueSize: 3,
})
const done = await upload.done()
// The response of a gateway of 2021 has none.
const ETag = isOld ? (await send(HeadObjectCommand, { Key: 'upload.bin' })).ETag : done.ETag
assert.match(ETag, /^"[0-9a-f]{32}-4"$/)
const uploaded = await send(GetObjectCommand, { Key: 'upload.bin' })
same(await bytesOf(uploaded), big)
assert.deepEqual([uploaded.ETag, uploaded.Metadata], [ETag, { kind: 'multipart' }])
const aborted = new Upload({
  client,
  params: { Bucket: bucket, Key: 'aborted.bin', Body: createReadStream('files/big.bin') },
})
aborted.on('httpUploadProgress', () => void aborted.abort())
await refuses('AbortError', aborted.done())
await refuses('NotFound', send(HeadObjectCommand, { Key: 'aborted.bin' }))

// Signed URLs of several operations.
const sign = (Command, input, options) =>
  getSignedUrl(client, new Command({ Bucket: bucket, ...input }), { expiresIn: 60, ...options })
const override = {
  ResponseContentDisposition: 'attachment; filename="x.txt"',
  ResponseContentType: 'text/x-signed',
}
const signed = await fetch(await sign(GetObjectCommand, { Key: key, ...override }))
same(Buffer.from(await signed.arrayBuffer()), notes)
assert.deepEqual(
  [signed.headers.get('content-disposition'), signed.headers.get('content-type')],
  ['attachment; filename="x.txt"', 'text/x-signed'],
)
const target = await sign(
  PutObjectCommand,
  { Key: 'signed.bin', ContentType: 'image/png', ContentLength: 1000 },
  { signableHeaders: new Set(['content-type']) },
)
const sentTo = (url, body, type) => fetch(url, { method: 'PUT', body, headers: { 'content-type': type } })
assert.equal((await sentTo(target, big.subarray(0, 1000), 'image/png')).status, 200)
same(await bytesOf(await send(GetObjectCommand, { Key: 'signed.bin' })), big.subarray(0, 1000))
const otherType = await sentTo(target, 'other', 'text/html')
assert.deepEqual(
  [otherType.status, /<Code>(\w+)/.exec(await otherType.text())?.[1]],
  [403, 'SignatureDoesNotMatch'],
)
const { UploadId } = await send(CreateMultipartUploadCommand, { Key: 'parts.bin' })
const part = await fetch(await sign(UploadPartCommand, { Key: 'parts.bin', UploadId, PartNumber: 1 }), {
  method: 'PUT',
  body: notes,
})
assert.equal(part.headers.get('etag'), `"${md5(notes)}"`)
await send(CompleteMultipartUploadCommand, {
  Key: 'parts.bin',
  UploadId,
  MultipartUpload: { Parts: [{ PartNumber: 1, ETag: part.headers.get('etag') ?? '' }] },
})
same(await bytesOf(await send(GetObjectCommand, { Key: 'parts.bin' })), notes)
assert.equal(
  (await fetch(await sign(DeleteObjectCommand, { Key: 'parts.bin' }), { method: 'DELETE' })).status,
  204,
)

// Lists.
const pages = []
for await (const page of paginateListObjectsV2({ client, pageSize: 2 }, { Bucket: bucket, Delimiter: '/' }))
  pages.push(page)
assert.deepEqual(
  pages.flatMap(({ CommonPrefixes = [] }) => CommonPrefixes.map(({ Prefix }) => Prefix)),
  [...(isOld ? [] : ['checksums/']), 'notes/'],
)
assert.deepEqual(
  pages.flatMap(({ Contents = [] }) => Contents.map(({ Key }) => Key)),
  ['signed.bin', 'stream.bin', 'upload.bin'],
)
const { Contents } = await send(ListObjectsV2Command, { Prefix: 'notes/', EncodingType: 'url' })
assert.equal(decodeURIComponent(Contents?.[0]?.Key.replaceAll('+', ' ')), key)

// Copies, deletes and errors.
await send(CopyObjectCommand, {
  Key: 'copied.txt',
  CopySource: encodeURIComponent(`${bucket}/${key}`),
  MetadataDirective: 'REPLACE',
  Metadata: { color: 'red' },
})
assert.deepEqual(withoutUrl((await send(HeadObjectCommand, { Key: 'copied.txt' })).Metadata), {
  color: 'red',
})
const Objects = (await send(ListObjectsV2Command, {})).Contents?.map(({ Key }) => ({ Key }))
assert.equal((await send(DeleteObjectsCommand, { Delete: { Objects } })).Deleted?.length, Objects.length)
assert.equal((await send(ListObjectsV2Command, {})).KeyCount, 0)
await refuses('NoSuchKey', send(GetObjectCommand, { Key: key }))
await refuses('NoSuchBucket', send(ListObjectsV2Command, { Bucket: `${bucket}-none` }))
const wrong = new S3Client({
  ...clientOptions,
  credentials: { ...clientOptions.credentials, secretAccessKey: 'wrong' },
})
await refuses('SignatureDoesNotMatch', wrong.send(new ListBucketsCommand({})))
