import { createHash } from 'node:crypto'
import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetBucketAclCommand,
  GetBucketVersioningCommand,
  GetObjectAttributesCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectVersionsCommand,
  PutBucketAclCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { beforeAll, expect, test } from 'vitest'
import { errorCode, makePair, sendSigned, useS3Door } from '../harness/s3-door.ts'

// What programs and public suites expect of a server of S3, besides the rules that s3.test.ts covers.

const door = useS3Door()
const { client } = door
const Bucket = 'compatible'
const partSize = 5 * 1024 * 1024

beforeAll(async () => {
  await client.send(new CreateBucketCommand({ Bucket, ACL: 'public-read' }))
})

const sha256 = (...bytes: readonly Uint8Array[]) =>
  createHash('sha256').update(Buffer.concat(bytes)).digest('base64')
const put = (Key: string, Body: string, more = {}) =>
  client.send(new PutObjectCommand({ Bucket, Key, Body, ...more }))
const url = (path: string) => `${door.endpoint}/${path}`

/** Uploads parts with checksums, and returns what completes them. */
async function uploadParts(Key: string, bodies: readonly Buffer[], ChecksumAlgorithm: 'SHA256' | undefined) {
  const { UploadId } = await client.send(
    new CreateMultipartUploadCommand({ Bucket, Key, ...(ChecksumAlgorithm && { ChecksumAlgorithm }) }),
  )
  const Parts = await Promise.all(
    bodies.map(async (Body, index) => {
      const PartNumber = index + 1
      const { ETag, ChecksumSHA256 } = await client.send(
        new UploadPartCommand({
          ...{ Bucket, Key, UploadId, PartNumber, Body },
          ...(ChecksumAlgorithm && { ChecksumSHA256: sha256(Body) }),
        }),
      )
      return { PartNumber, ETag, ChecksumSHA256 }
    }),
  )
  const complete = (more = {}, parts: object[] = Parts) =>
    client.send(
      new CompleteMultipartUploadCommand({
        ...{ Bucket, Key, UploadId, MultipartUpload: { Parts: parts }, ...more },
      }),
    )
  return { UploadId, Parts, complete }
}

test('MU8 an upload that was never created is unknown, whatever its parts are', async () => {
  const body =
    '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"1234"</ETag></Part></CompleteMultipartUpload>'
  const response = await sendSigned(door.pair, url(`${Bucket}/a?uploadId=abc1234def`), {
    method: 'POST',
    body,
  })
  expect(await errorCode(response)).toBe('404 NoSuchUpload')
})

test('SP9 a checksum whose algorithm an SDK names is that of the document', async () => {
  const { UploadId, Parts } = await uploadParts('sdk', [Buffer.from('A')], undefined)
  const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${Parts[0]?.ETag}</ETag></Part></CompleteMultipartUpload>`
  const complete = (checksum: string) =>
    sendSigned(door.pair, url(`${Bucket}/sdk?uploadId=${UploadId}`), {
      ...{ method: 'POST', body },
      headers: { 'x-amz-sdk-checksum-algorithm': 'SHA256', 'x-amz-checksum-sha256': checksum },
    })
  expect(await errorCode(await complete(sha256(Buffer.from('A'))))).toBe('400 BadDigest')
  expect((await complete(sha256(Buffer.from(body)))).status).toBe(200)
})

test('MU8 of a part that is named twice, the last one counts', async () => {
  const { Parts, complete } = await uploadParts('twice', [Buffer.from('A')], undefined)
  const other = `"${createHash('md5').update('B').digest('hex')}"`
  await complete({}, [{ PartNumber: 1, ETag: other }, ...Parts])
  const { Body } = await client.send(new GetObjectCommand({ Bucket, Key: 'twice' }))
  expect(await Body?.transformToString()).toBe('A')
  const wrong = await uploadParts('twice', [Buffer.from('A')], undefined)
  await expect(wrong.complete({}, [...wrong.Parts, { PartNumber: 1, ETag: other }])).rejects.toMatchObject({
    name: 'InvalidPart',
  })
})

test('SP9 the checksum of a completion is that of the object, also when it is repeated, and parts keep theirs', async () => {
  const Key = 'checked'
  const bodies = [Buffer.alloc(partSize, 'A'), Buffer.from('end')]
  const { complete } = await uploadParts(Key, bodies, 'SHA256')
  const digests = bodies.map((body) => Buffer.from(sha256(body), 'base64'))
  const ChecksumSHA256 = `${sha256(...digests)}-2`
  for (const wrong of [
    { ChecksumSHA256: 'bad' },
    { ChecksumSHA256: `${ChecksumSHA256.slice(0, -2)}-3` },
    { ChecksumCRC32: 'AAAAAA==' },
    { ChecksumType: 'FULL_OBJECT' },
  ])
    await expect(complete(wrong), JSON.stringify(wrong)).rejects.toMatchObject({ name: 'BadDigest' })
  const done = await complete({ ChecksumSHA256, ChecksumType: 'COMPOSITE' })
  expect(done).toMatchObject({ ChecksumSHA256, ChecksumType: 'COMPOSITE' })
  expect(await complete({ ChecksumSHA256 })).toMatchObject({ ETag: done.ETag, ChecksumSHA256 })
  const ObjectAttributes = ['Checksum', 'ObjectParts'] as const
  const attributes = await client.send(
    new GetObjectAttributesCommand({ Bucket, Key, ObjectAttributes: [...ObjectAttributes] }),
  )
  expect(attributes.Checksum).toMatchObject({ ChecksumSHA256 })
  expect(attributes.ObjectParts?.Parts).toMatchObject(
    bodies.map((body, index) => ({
      ...{ PartNumber: index + 1, Size: body.byteLength, ChecksumSHA256: sha256(body) },
    })),
  )
  const part = { Bucket, Key, PartNumber: 2, ChecksumMode: 'ENABLED' } as const
  expect((await client.send(new HeadObjectCommand(part))).ChecksumSHA256).toBe(sha256(Buffer.from('end')))
})

test('SP9 a part with another checksum than its upload is refused, and headers of any permitted length complete', async () => {
  const Key = 'long'
  // 4,096 bytes as JSON, to which the checksum is added.
  const room = 4_096 - JSON.stringify({ contentDisposition: 'attachment; a=', metadata: {} }).length
  const ContentDisposition = `attachment; a=${'x'.repeat(room)}`
  const create = (more: object) =>
    client.send(new CreateMultipartUploadCommand({ Bucket, Key, ChecksumAlgorithm: 'CRC32', ...more }))
  await expect(create({ ContentDisposition: `${ContentDisposition}x` })).rejects.toMatchObject({
    name: 'MetadataTooLarge',
  })
  const { UploadId } = await create({ ContentDisposition })
  const part = { Bucket, Key, UploadId, PartNumber: 1, Body: 'x' }
  const other = new UploadPartCommand({ ...part, ChecksumSHA256: sha256(Buffer.from('x')) })
  await expect(client.send(other)).rejects.toMatchObject({ name: 'InvalidRequest' })
  const { ETag, ChecksumCRC32 } = await client.send(
    new UploadPartCommand({ ...part, ChecksumCRC32: 'jNwWgw==' }),
  )
  const Parts = [{ PartNumber: 1, ETag, ChecksumCRC32 }]
  const MultipartUpload = { Parts }
  const completed = await client.send(
    new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload }),
  )
  expect(completed).toMatchObject({ ChecksumType: 'COMPOSITE', Location: `${url(Bucket)}/${Key}` })
  expect((await client.send(new HeadObjectCommand({ Bucket, Key }))).ContentDisposition).toBe(
    ContentDisposition,
  )
})

test('SP3 a checksum that is none is a wrong one, and a copy gets the checksum that it asks for', async () => {
  for (const value of ['bad', 'AAAAAA==', `${sha256(Buffer.from('x'))}=`])
    await expect(put('a', 'x', { ChecksumSHA256: value }), value).rejects.toMatchObject({ name: 'BadDigest' })
  await put('a', 'x', { ChecksumSHA256: sha256(Buffer.from('x')) })
  const copy = { Bucket, Key: 'copy', CopySource: `${Bucket}/a` }
  const { CopyObjectResult: kept } = await client.send(new CopyObjectCommand(copy))
  expect(kept?.ChecksumSHA256).toBe(sha256(Buffer.from('x')))
  const { CopyObjectResult: other } = await client.send(
    new CopyObjectCommand({ ...copy, ChecksumAlgorithm: 'CRC32' }),
  )
  expect(other).toMatchObject({ ChecksumCRC32: 'jNwWgw==', ChecksumType: 'FULL_OBJECT' })
  expect(other?.ChecksumSHA256).toBeUndefined()
  const itself = { ...copy, Key: 'a', MetadataDirective: 'REPLACE', ChecksumAlgorithm: 'CRC32' } as const
  await expect(client.send(new CopyObjectCommand(itself))).rejects.toMatchObject({ name: 'NotImplemented' })
})

test('SP5, SP11 a bucket that does not exist is one for everybody, and so is a key of a bucket with public keys', async () => {
  await put('public', 'x', { ACL: 'public-read' })
  await put('private', 'x')
  const own = await makePair(door.server, '--bucket', Bucket, '--scope', 'media:read,media:write')
  await client.send(new CreateBucketCommand({ Bucket: 'closed' }))
  const cases = [
    ['public', 'GET', '200 '],
    ['none', 'GET', '404 NoSuchKey'],
    ['private', 'GET', '403 AccessDenied'],
    ['none', 'DELETE', '403 AccessDenied'],
  ] as const
  for (const [key, method, expected] of cases)
    expect(await errorCode(await fetch(url(`${Bucket}/${key}`), { method })), `${method} ${key}`).toBe(
      expected,
    )
  for (const [path, method] of [
    ['closed/none', 'GET'],
    ['closed/none', 'PUT'],
    ['closed', 'GET'],
    ['no-such-bucket', 'PUT'],
    ['', 'GET'],
  ] as const)
    expect(await errorCode(await fetch(url(path), { method })), `${method} ${path}`).toBe('403 AccessDenied')
  for (const path of ['no-such-bucket/a', 'no-such-bucket', 'Not_A_Name/a'])
    for (const method of ['GET', 'DELETE'])
      if (method === 'GET' || path.includes('/')) {
        expect(await errorCode(await fetch(url(path), { method })), path).toBe('404 NoSuchBucket')
        expect(await errorCode(await sendSigned(door.pair, url(path), { method })), path).toBe(
          '404 NoSuchBucket',
        )
        expect(await errorCode(await sendSigned(own, url(path), { method })), path).toBe('404 NoSuchBucket')
      }
  expect(await errorCode(await sendSigned(own, url('closed')))).toBe('403 AccessDenied')
  const headers = { 'x-amz-copy-source': '/no-such-bucket/a' }
  expect(await errorCode(await sendSigned(own, url(`${Bucket}/b`), { method: 'PUT', headers }))).toBe(
    '404 NoSuchBucket',
  )
})

test('SP4 a preflight request gets the errors of a bucket without CORS', async () => {
  const signed = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key: 'public' }))
  expect(await errorCode(await fetch(signed, { method: 'OPTIONS' }))).toBe('400 BadRequest')
  const headers = { origin: 'https://example.org', 'access-control-request-method': 'PUT' }
  expect(await errorCode(await fetch(signed, { method: 'OPTIONS', headers }))).toBe('403 AccessForbidden')
})

test('SP10 the ACL of a bucket without public keys is private', async () => {
  const closed = 'without-public-keys'
  await client.send(new CreateBucketCommand({ Bucket: closed }))
  const { Grants } = await client.send(new GetBucketAclCommand({ Bucket: closed }))
  expect(Grants?.map(({ Permission }) => Permission)).toEqual(['FULL_CONTROL'])
  await client.send(new PutBucketAclCommand({ Bucket: closed, ACL: 'private' }))
  const { Owner } = await client.send(new GetBucketAclCommand({ Bucket: closed }))
  await client.send(new PutBucketAclCommand({ Bucket: closed, AccessControlPolicy: { Owner, Grants } }))
  await expect(
    client.send(new PutBucketAclCommand({ Bucket: closed, ACL: 'public-read' })),
  ).rejects.toMatchObject({
    name: 'AccessControlListNotSupported',
  })
  for (const ACL of ['public-read-write', 'authenticated-read'] as const)
    await expect(client.send(new PutBucketAclCommand({ Bucket: closed, ACL }))).rejects.toMatchObject({
      name: 'NotImplemented',
    })
  expect((await fetch(url(closed))).status).toBe(403)
})

test('SP4 a bucket behaves as one whose versioning is suspended', async () => {
  const set = (Status: 'Enabled' | 'Suspended', more = {}) =>
    client.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status, ...more } }))
  await set('Suspended')
  expect((await client.send(new GetBucketVersioningCommand({ Bucket }))).Status).toBeUndefined()
  await expect(set('Enabled')).rejects.toMatchObject({ name: 'NotImplemented' })
  await expect(set('Suspended', { MFADelete: 'Enabled' })).rejects.toMatchObject({ name: 'NotImplemented' })
  for (const name of ['v/1', 'v/2', 'v/sub/3']) await put(name, name)
  const found: (string | undefined)[] = []
  let KeyMarker: string | undefined
  do {
    const page = await client.send(
      new ListObjectVersionsCommand({ Bucket, Prefix: 'v/', Delimiter: '/', MaxKeys: 1, KeyMarker }),
    )
    for (const { Key, VersionId, IsLatest } of page.Versions ?? [])
      found.push(`${Key} ${VersionId} ${IsLatest}`)
    found.push(...(page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix))
    KeyMarker = page.NextKeyMarker
  } while (KeyMarker !== undefined)
  expect(found).toEqual(['v/1 null true', 'v/2 null true', 'v/sub/'])
  await client.send(new DeleteObjectCommand({ Bucket, Key: 'v/1', VersionId: 'null' }))
  expect(
    (await client.send(new ListObjectVersionsCommand({ Bucket, Prefix: 'v/1' }))).Versions,
  ).toBeUndefined()
})

test('SP6 the prefix of a list comes back so that a client may decode it or not', async () => {
  for (const [prefix, sent] of [
    ['\n', '\n'],
    ['a b/é/\u{1f600}', 'a b/é/\u{1f600}'],
    ['50%+\u0001', '50%25%2B%01'],
  ] as const) {
    const query = new URLSearchParams({ prefix, 'encoding-type': 'url' })
    const page = await (await sendSigned(door.pair, url(`${Bucket}?${query}`))).text()
    expect(page).toContain(`<Prefix>${sent}</Prefix>`)
  }
})
