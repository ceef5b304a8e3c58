import { createHash } from 'node:crypto'
import {
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketLocationCommand,
  GetBucketVersioningCommand,
  GetObjectAclCommand,
  GetObjectAttributesCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsCommand,
  ListObjectsV2Command,
  PutObjectAclCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import {
  clientOf,
  errorCode,
  makePair,
  sendSigned,
  signedChunks,
  signHeaders,
  useS3Door,
} from '../harness/s3-door.ts'

const door = useS3Door()
const { client, newBucket, put, textOf } = door

test('SP5 buckets are created, listed, read and deleted', async () => {
  const Bucket = await newBucket()
  const { Buckets = [] } = await client.send(new ListBucketsCommand({}))
  expect(Buckets.map(({ Name }) => Name)).toContain(Bucket)
  expect((await client.send(new HeadBucketCommand({ Bucket }))).BucketRegion).toBe('us-east-1')
  expect((await client.send(new GetBucketLocationCommand({ Bucket }))).LocationConstraint).toBeUndefined()
  expect((await client.send(new GetBucketVersioningCommand({ Bucket }))).Status).toBeUndefined()
  await expect(client.send(new CreateBucketCommand({ Bucket }))).rejects.toMatchObject({
    name: 'BucketAlreadyOwnedByYou',
  })
  await put(Bucket, 'a', 'a')
  await expect(client.send(new DeleteBucketCommand({ Bucket }))).rejects.toMatchObject({
    name: 'BucketNotEmpty',
  })
  await client.send(new DeleteObjectCommand({ Bucket, Key: 'a' }))
  await client.send(new DeleteBucketCommand({ Bucket }))
  await expect(put(Bucket, 'a', 'a')).rejects.toMatchObject({ name: 'NoSuchBucket' })
  expect(await errorCode(await sendSigned(door.pair, `${door.endpoint}/Not_A_Name`, { method: 'PUT' }))).toBe(
    '400 InvalidBucketName',
  )
})

test('SP1 a token of a bucket reaches its bucket only, by its scopes, until it is revoked', async () => {
  const [Bucket, other] = [await newBucket(), await newBucket()]
  await put(Bucket, 'a', 'text')
  const own = await makePair(door.server, '--bucket', Bucket, '--scope', 'media:read,media:write')
  const reader = clientOf(door.endpoint, own)
  expect((await reader.send(new ListBucketsCommand({}))).Buckets?.map(({ Name }) => Name)).toEqual([Bucket])
  expect((await reader.send(new HeadObjectCommand({ Bucket, Key: 'a' }))).ContentLength).toBe(4)
  for (const [method, path] of [
    ['GET', `/${other}`],
    ['PUT', '/new-bucket'],
    ['DELETE', `/${Bucket}/a`],
    ['PUT', `/${Bucket}/a`],
  ] as const)
    expect(await errorCode(await sendSigned(own, door.endpoint + path, { method })), path).toBe(
      '403 AccessDenied',
    )
  await reader.send(new PutObjectCommand({ Bucket, Key: 'b', Body: 'new' }))
  await door.server.command('token', 'revoke', own.accessKeyId)
  expect(await errorCode(await sendSigned(own, `${door.endpoint}/${Bucket}`))).toBe('403 InvalidAccessKeyId')
  reader.destroy()
})

test('SP1 the keys are those of the response to POST /api/tokens, and stay valid when the signing key is replaced', async () => {
  const Bucket = await newBucket()
  const { token } = JSON.parse(
    (
      await door.server.command(
        'token',
        'create',
        '--bucket',
        Bucket,
        '--scope',
        'tokens:manage,media:read',
        '--json',
      )
    ).stdout,
  )
  const create = (body: object) =>
    fetch(`${door.server.url}/api/tokens`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ scopes: ['media:read'], ...body }),
    })
  const created = JSON.parse(await (await create({ s3: true })).text())
  expect(created).toMatchObject({
    access_key_id: created.id,
    secret_access_key: expect.stringMatching(/^[\da-f]{64}$/),
  })
  expect(await (await create({})).json()).not.toHaveProperty('secret_access_key')
  expect((await create({ s3: 'yes' })).status).toBe(400)
  const own = { accessKeyId: created.access_key_id, secretAccessKey: created.secret_access_key }
  const url = `${door.endpoint}/${Bucket}`
  expect((await sendSigned(own, url)).status).toBe(200)
  const { stdout: before } = await door.server.command('token', 'keys', created.id, '--json')
  expect(JSON.parse(before)).toEqual({
    access_key_id: created.id,
    secret_access_key: created.secret_access_key,
  })
  await door.server.command('keys', 'rotate')
  const { stdout: after } = await door.server.command('token', 'keys', created.id, '--json')
  const secretAccessKey = JSON.parse(after).secret_access_key
  expect(secretAccessKey).not.toBe(created.secret_access_key)
  expect((await sendSigned({ ...own, secretAccessKey }, url)).status).toBe(200)
  expect((await sendSigned(own, url)).status).toBe(200)
})

test('SP2 requests with a wrong, old, foreign or partial signature are refused, and store nothing', async () => {
  const Bucket = await newBucket()
  const url = `${door.endpoint}/${Bucket}/a`
  const body = 'text'
  const method = 'PUT'
  const minutes = 60_000
  const now = Date.now()
  const cases: readonly (readonly [Promise<Response>, string])[] = [
    [fetch(url, { method, body }), '403 AccessDenied'],
    [fetch(url, { method, body, headers: { authorization: 'Bearer mbkt_x' } }), '400 InvalidRequest'],
    [
      sendSigned({ ...door.pair, secretAccessKey: 'other' }, url, { method, body }),
      '403 SignatureDoesNotMatch',
    ],
    [
      sendSigned({ ...door.pair, accessKeyId: 'tok_000000000000' }, url, { method, body }),
      '403 InvalidAccessKeyId',
    ],
    [
      sendSigned({ ...door.pair, accessKeyId: 'AKIAIOSFODNN7EXAMPLE' }, url, { method, body }),
      '403 InvalidAccessKeyId',
    ],
    [sendSigned(door.pair, url, { method, body, time: now - 16 * minutes }), '403 RequestTimeTooSkewed'],
    [sendSigned(door.pair, url, { method, body, time: now + 16 * minutes }), '403 RequestTimeTooSkewed'],
    [
      sendSigned(door.pair, url, { method, body, scope: '20200101/us-east-1/s3/aws4_request' }),
      '400 AuthorizationHeaderMalformed',
    ],
    [
      sendSigned(door.pair, url, { method, body, scope: '20261129/us-east-1/ec2/aws4_request' }),
      '400 AuthorizationHeaderMalformed',
    ],
    [
      sendSigned(door.pair, url, { method, body, unsigned: { 'x-amz-acl': 'public-read' } }),
      '403 AccessDenied',
    ],
    [
      sendSigned(door.pair, url, { method, body, payloadHash: createHash('sha256').digest('hex') }),
      '400 ContentSHA256Mismatch',
    ],
    [
      sendSigned(door.pair, url, { method, body, payloadHash: 'STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD' }),
      '400 InvalidArgument',
    ],
    [sendSigned(door.pair, url, { method, body, headers: { 'content-md5': 'AAAA' } }), '400 InvalidDigest'],
    [
      sendSigned(door.pair, url, { method, body, headers: { 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' } }),
      '400 BadDigest',
    ],
    [
      sendSigned(door.pair, url, { method, body, headers: { 'x-amz-checksum-crc32': 'AAAAAA==' } }),
      '400 BadDigest',
    ],
    [
      sendSigned(door.pair, url, { method, body, headers: { 'x-amz-checksum-crc32': 'AAAA' } }),
      '400 BadDigest',
    ],
    [
      sendSigned(door.pair, url, {
        method,
        body,
        headers: { 'x-amz-checksum-crc32': 'AAAAAA==', 'x-amz-checksum-crc32c': 'AAAAAA==' },
      }),
      '400 InvalidRequest',
    ],
  ]
  for (const [response, expected] of cases) expect(await errorCode(await response)).toBe(expected)
  const { KeyCount } = await client.send(new ListObjectsV2Command({ Bucket }))
  expect(KeyCount).toBe(0)
})

test('SP3 signed chunks are verified one by one, and a body that is not as it was announced is not stored', async () => {
  const Bucket = await newBucket()
  const url = `${door.endpoint}/${Bucket}/a`
  const pieces = ['x'.repeat(70_000), 'end']
  async function send(change: (body: string) => string, length = 70_003): Promise<Response> {
    const headers = { 'x-amz-decoded-content-length': `${length}`, 'content-encoding': 'aws-chunked,gzip' }
    const signed = signHeaders(door.pair, url, {
      ...{ method: 'PUT', headers, payloadHash: 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD' },
    })
    return fetch(url, { method: 'PUT', headers: signed.headers, body: change(signedChunks(signed, pieces)) })
  }
  expect(await errorCode(await send((body) => body.replace('xx', 'xy')))).toBe('403 SignatureDoesNotMatch')
  expect(await errorCode(await send((body) => body.slice(0, -10)))).toBe('400 IncompleteBody')
  expect(await errorCode(await send((body) => body, 70_000))).toBe('400 IncompleteBody')
  expect(await errorCode(await send((body) => body, 70_004))).toBe('400 IncompleteBody')
  expect(await errorCode(await send((body) => `${body}0\r\n\r\n`))).toBe('400 IncompleteBody')
  expect((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount).toBe(0)
  expect((await send((body) => body)).status).toBe(200)
  const { ContentEncoding, ContentLength, ETag } = await client.send(
    new HeadObjectCommand({ Bucket, Key: 'a' }),
  )
  expect({ ContentEncoding, ContentLength }).toEqual({ ContentEncoding: 'gzip', ContentLength: 70_003 })
  expect(ETag).toBe(`"${createHash('md5').update(pieces.join('')).digest('hex')}"`)
})

test.each(['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] as const)(
  'SP3 %s is verified, stored and returned, in a header and in a trailer',
  async (ChecksumAlgorithm) => {
    const Bucket = await newBucket()
    for (const [Key, Body] of [
      ['small', Buffer.from('small')],
      ['large', Buffer.alloc(200_000, 'large')],
    ] as const) {
      const stored = await put(Bucket, Key, Body, { ChecksumAlgorithm })
      const member = `Checksum${ChecksumAlgorithm}` as const
      expect(stored[member]).toBeDefined()
      const head = await client.send(new HeadObjectCommand({ Bucket, Key, ChecksumMode: 'ENABLED' }))
      expect(head).toMatchObject({ [member]: stored[member], ChecksumType: 'FULL_OBJECT' })
      expect((await textOf(Bucket, Key, { ChecksumMode: 'ENABLED' }))?.length).toBe(Body.length)
    }
  },
)

test('SP4 what is not implemented gets 501 with its name, and nothing is accepted in silence', async () => {
  const Bucket = await newBucket()
  const bucket = `${door.endpoint}/${Bucket}`
  const cases: readonly (readonly [string, string, Readonly<Record<string, string>>, string])[] = [
    ['GET', `${bucket}?policy`, {}, 'GetBucketPolicy'],
    ['PUT', `${bucket}?lifecycle`, {}, 'PutBucketLifecycleConfiguration'],
    ['GET', `${bucket}?ownershipControls`, {}, 'GetBucketOwnershipControls'],
    ['DELETE', `${bucket}/a`, { 'x-amz-if-match-size': '5' }, 'x-amz-if-match-size'],
    ['PUT', bucket, { 'x-amz-object-ownership': 'ObjectWriter' }, 'x-amz-object-ownership'],
    ['PUT', `${bucket}/a?tagging`, {}, 'PutObjectTagging'],
    ['GET', `${bucket}/a?versionId=abc`, {}, 'GetObject with versionId'],
    ['PUT', `${bucket}/a`, { 'x-amz-server-side-encryption': 'AES256' }, 'x-amz-server-side-encryption'],
    ['PUT', `${bucket}/a`, { 'x-amz-tagging': 'a=b' }, 'x-amz-tagging'],
    ['PUT', `${bucket}/a`, { 'x-amz-storage-class': 'GLACIER' }, 'x-amz-storage-class'],
    ['PUT', `${bucket}/a`, { 'x-amz-acl': 'public-read-write' }, 'public-read-write'],
    ['POST', `${bucket}/a?restore`, {}, 'RestoreObject'],
    ['GET', `${bucket}?object-lock`, {}, 'GetObjectLockConfiguration'],
    ['DELETE', `${bucket}?uploads`, {}, 'DeleteBucket with the parameter uploads'],
    ['DELETE', `${bucket}?delete`, {}, 'DeleteBucket with the parameter delete'],
    ['DELETE', `${bucket}?list-type=2`, {}, 'DeleteBucket with the parameter list-type'],
    ['GET', `${bucket}?list-type=3`, {}, 'ListObjects with another list-type than 2'],
    ['PUT', `${bucket}-other?delete`, {}, 'CreateBucket with the parameter delete'],
    ['DELETE', `${bucket}/a?uploads`, {}, 'DeleteObject with the parameter uploads'],
    ['DELETE', `${bucket}/a?partNumber=1`, {}, 'DeleteObject with the parameter partNumber'],
    ['PUT', `${bucket}/a?partNumber=2`, {}, 'PutObject with the parameter partNumber'],
    ['PUT', `${bucket}/a?uploads`, {}, 'PutObject with the parameter uploads'],
    ['POST', `${bucket}/a?uploads&uploadId=a`, {}, 'CreateMultipartUpload with the parameter uploadId'],
    ['GET', `${bucket}?acl&policy`, {}, 'GetBucketAcl with the parameter policy'],
    ['PUT', `${bucket}/a`, { 'x-amz-checksum-sha512': 'AAAA' }, 'x-amz-checksum-sha512'],
    ['PUT', `${bucket}/a`, { 'x-amz-checksum-md5': 'AAAA' }, 'x-amz-checksum-md5'],
    ['PATCH', `${bucket}/a`, {}, 'PATCHObject'],
  ]
  for (const [method, url, headers, name] of cases) {
    const response = await sendSigned(door.pair, url, { method, headers })
    const text = await response.text()
    expect([response.status, text], url).toEqual([501, expect.stringContaining(name)])
  }
  expect((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount).toBe(0)
})

test('SP6 lists of both versions go on after any key, with delimiters and encoded keys', async () => {
  const Bucket = await newBucket()
  const keys = ['a', 'b/1', 'b/2', 'c d+é', 'e\u0001f', '~']
  for (const key of keys) await put(Bucket, key, key)
  async function all(MaxKeys: number, Delimiter?: string): Promise<(string | undefined)[]> {
    const found: (string | undefined)[] = []
    let ContinuationToken: string | undefined
    do {
      const page = await client.send(
        new ListObjectsV2Command({ Bucket, MaxKeys, Delimiter, ContinuationToken, EncodingType: 'url' }),
      )
      found.push(
        ...(page.Contents ?? []).map(({ Key }) => Key),
        ...(page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix),
      )
      ContinuationToken = page.NextContinuationToken
    } while (ContinuationToken !== undefined)
    return found.map((key) => decodeURIComponent(key ?? ''))
  }
  for (const limit of [1, 2, 1_000]) {
    expect(await all(limit)).toEqual(keys)
    expect((await all(limit, '/')).sort()).toEqual(['a', 'b/', 'c d+é', 'e\u0001f', '~'])
  }
  const { Contents, NextMarker, IsTruncated } = await client.send(
    new ListObjectsCommand({ Bucket, MaxKeys: 2, Delimiter: '/', Prefix: 'b/' }),
  )
  expect(Contents?.map(({ Key, Size, Owner }) => [Key, Size, Owner?.ID])).toEqual([
    ['b/1', 3, 'mediabucket'],
    ['b/2', 3, 'mediabucket'],
  ])
  expect([NextMarker, IsTruncated]).toEqual([undefined, false])
  const after = await client.send(new ListObjectsV2Command({ Bucket, StartAfter: 'b/1', FetchOwner: true }))
  expect(after.Contents?.[0]).toMatchObject({ Key: 'b/2', Owner: { ID: 'mediabucket' } })
  expect((await client.send(new ListObjectsV2Command({ Bucket, MaxKeys: 0 }))).IsTruncated).toBe(false)
  for (const query of ['max-keys=x', 'encoding-type=xml', 'list-type=2&continuation-token=!'])
    expect(await errorCode(await sendSigned(door.pair, `${door.endpoint}/${Bucket}?${query}`))).toBe(
      '400 InvalidArgument',
    )
})

test('SP7 errors have the request id of the header, and unusual requests get errors of the protocol', async () => {
  const Bucket = await newBucket()
  const response = await sendSigned(door.pair, `${door.endpoint}/${Bucket}/none%20here`)
  expect(response.headers.get('content-type')).toBe('application/xml')
  expect(await response.text()).toBe(
    `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code><Message>The key does not exist.</Message><Resource>/${Bucket}/none%20here</Resource><RequestId>${response.headers.get('x-amz-request-id')}</RequestId></Error>`,
  )
  for (const path of ['/%ff/a', `/${Bucket}/%zz`, `/${Bucket}/a%ed%a0%80`])
    expect(await errorCode(await fetch(door.endpoint + path)), path).toBe('400 InvalidURI')
  const long = `${door.endpoint}/${Bucket}/${'k'.repeat(1_025)}`
  expect(await errorCode(await sendSigned(door.pair, long, { method: 'PUT', body: 'x' }))).toBe(
    '400 KeyTooLongError',
  )
})

test('SP8 objects are read by ranges and conditions, with their headers and the URL of the item', async () => {
  const Bucket = await newBucket()
  const { ETag = '' } = await put(Bucket, 'a/b.txt', '0123456789', {
    ...{
      ContentType: 'text/plain',
      CacheControl: 'no-cache',
      ContentLanguage: 'en',
      ContentDisposition: 'inline',
    },
    Metadata: { one: '1', 'mediabucket-url': 'other' },
  })
  const object = await client.send(new GetObjectCommand({ Bucket, Key: 'a/b.txt' }))
  expect(object).toMatchObject({
    ...{
      ETag,
      ContentType: 'text/plain',
      CacheControl: 'no-cache',
      ContentLanguage: 'en',
      ContentLength: 10,
    },
    ContentDisposition: 'inline',
  })
  expect(object.Metadata).toMatchObject({ one: '1' })
  const { Metadata } = await client.send(new HeadObjectCommand({ Bucket, Key: 'a/b.txt' }))
  const media = await fetch(Metadata?.['mediabucket-url'] ?? '')
  expect(await media.text()).toBe('0123456789')
  expect(await textOf(Bucket, 'a/b.txt', { Range: 'bytes=2-4' })).toBe('234')
  expect(await textOf(Bucket, 'a/b.txt', { Range: 'bytes=-3' })).toBe('789')
  expect(await textOf(Bucket, 'a/b.txt', { PartNumber: 1 })).toBe('0123456789')
  const failing = [
    [{ Range: 'bytes=10-' }, 416],
    [{ IfMatch: '"other"' }, 412],
    [{ IfNoneMatch: ETag }, 304],
    [{ IfModifiedSince: new Date(Date.now() + 1_000) }, 304],
    [{ IfUnmodifiedSince: new Date(0) }, 412],
    [{ PartNumber: 2 }, 400],
  ] as const
  for (const [more, httpStatusCode] of failing)
    await expect(textOf(Bucket, 'a/b.txt', more), JSON.stringify(more)).rejects.toMatchObject({
      $metadata: { httpStatusCode },
    })
  expect(await textOf(Bucket, 'a/b.txt', { IfMatch: ETag, IfNoneMatch: '"other"' })).toBe('0123456789')
  const attributes = await client.send(
    new GetObjectAttributesCommand({ Bucket, Key: 'a/b.txt', ObjectAttributes: ['ETag', 'ObjectSize'] }),
  )
  expect(attributes).toMatchObject({ ETag: ETag.replaceAll('"', ''), ObjectSize: 10 })
})

test('SP8 a page that a signed URL opens is inert, whatever type it asks for, and no header is injected', async () => {
  const Bucket = await newBucket()
  await put(Bucket, 'a', '<script>', {
    ContentType: 'text/html',
    ContentDisposition: 'inline; filename="a.html"',
  })
  const response = await sendSigned(
    door.pair,
    `${door.endpoint}/${Bucket}/a?response-content-type=image%2Fsvg%2Bxml`,
  )
  expect(response.headers.get('content-type')).toBe('image/svg+xml')
  expect(response.headers.get('content-security-policy')).toContain('sandbox')
  const url = `${door.endpoint}/${Bucket}/a?response-content-type=text%2Fhtml&response-content-disposition=inline`
  expect((await sendSigned(door.pair, url)).headers.get('x-content-type-options')).toBe('nosniff')
  const named = `${door.endpoint}/${Bucket}/a?response-content-disposition=${encodeURIComponent('attachment; filename="Müller"')}`
  expect((await sendSigned(door.pair, named)).headers.get('content-disposition')).toBe(
    'attachment; filename="Müller"',
  )
  const injected = `${door.endpoint}/${Bucket}/a?response-cache-control=a%0d%0aSet-Cookie:%20b`
  expect(await errorCode(await sendSigned(door.pair, injected))).toBe('400 InvalidArgument')
})

test('SP8 metadata come back with the bytes that were sent', async () => {
  const Bucket = await newBucket()
  const url = `${door.endpoint}/${Bucket}/a`
  const headers = {
    'x-amz-meta-utf8': Buffer.from('Grüße').toString('latin1'),
    'x-amz-meta-latin1': 'Gr\xfc\xdfe',
    'x-amz-meta-rfc2047': '=?UTF-8?B?R3LDvMOfZQ==?=',
    'content-disposition': Buffer.from('attachment; filename="Grüße €.txt"').toString('latin1'),
  }
  expect((await sendSigned(door.pair, url, { method: 'PUT', headers, body: 'x' })).status).toBe(200)
  const response = await sendSigned(door.pair, url)
  for (const [name, value] of Object.entries(headers)) expect(response.headers.get(name)).toBe(value)
  // boto3 sends Latin-1 and signs UTF-8.
  const encoding = 'utf8'
  expect((await sendSigned(door.pair, url, { method: 'PUT', headers, body: 'x', encoding })).status).toBe(200)
  const long = { 'x-amz-meta-a': 'a'.repeat(2_048) }
  expect(await errorCode(await sendSigned(door.pair, url, { method: 'PUT', headers: long, body: 'x' }))).toBe(
    '400 MetadataTooLarge',
  )
})

test('SP8 objects are copied, with their headers or with new ones', async () => {
  const [Bucket, other] = [await newBucket(), await newBucket()]
  await put(Bucket, 'a ü', 'text', { ContentType: 'text/plain', Metadata: { one: '1' } })
  const CopySource = encodeURIComponent(`${Bucket}/a ü`)
  await client.send(new CopyObjectCommand({ Bucket: other, Key: 'b', CopySource }))
  expect((await client.send(new HeadObjectCommand({ Bucket: other, Key: 'b' }))).Metadata).toMatchObject({
    one: '1',
  })
  await client.send(
    new CopyObjectCommand({
      Bucket,
      Key: 'a ü',
      CopySource,
      MetadataDirective: 'REPLACE',
      Metadata: { two: '2' },
    }),
  )
  const { Metadata } = await client.send(new HeadObjectCommand({ Bucket, Key: 'a ü' }))
  expect(Metadata).toMatchObject({ two: '2' })
  expect(Metadata).not.toHaveProperty('one')
  await expect(client.send(new CopyObjectCommand({ Bucket, Key: 'a ü', CopySource }))).rejects.toMatchObject({
    name: 'InvalidRequest',
  })
  await expect(
    client.send(new CopyObjectCommand({ Bucket, Key: 'c', CopySource, CopySourceIfNoneMatch: '*' })),
  ).rejects.toMatchObject({ name: 'PreconditionFailed' })
  await expect(
    client.send(new CopyObjectCommand({ Bucket, Key: 'c', CopySource: `${Bucket}/none` })),
  ).rejects.toMatchObject({ name: 'NoSuchKey' })
})

test('SP8 a write with a condition stores only if it holds; many keys are deleted at once', async () => {
  const Bucket = await newBucket()
  const { ETag } = await put(Bucket, 'a', '1', { IfNoneMatch: '*' })
  await expect(put(Bucket, 'a', '2', { IfNoneMatch: '*' })).rejects.toMatchObject({
    name: 'PreconditionFailed',
  })
  await expect(put(Bucket, 'a', '2', { IfMatch: '"other"' })).rejects.toMatchObject({
    name: 'PreconditionFailed',
  })
  await put(Bucket, 'a', '3', { IfMatch: ETag })
  expect(await textOf(Bucket, 'a')).toBe('3')
  await put(Bucket, 'b', 'b')
  const { Deleted, Errors } = await client.send(
    new DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: 'a' }, { Key: 'b' }, { Key: 'none' }] } }),
  )
  expect([Deleted?.map(({ Key }) => Key), Errors]).toEqual([['a', 'b', 'none'], undefined])
  const many = Array.from({ length: 1_001 }, (_, index) => ({ Key: `${index}` }))
  await expect(
    client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: many } })),
  ).rejects.toMatchObject({
    name: 'MalformedXML',
  })
})

test('SP10 the ACL of an object is one bit, which a bucket without public keys refuses', async () => {
  const Bucket = await newBucket()
  await put(Bucket, 'a', 'a', { ACL: 'private' })
  const { Owner, Grants } = await client.send(new GetObjectAclCommand({ Bucket, Key: 'a' }))
  expect([Owner?.ID, Grants?.map(({ Permission }) => Permission)]).toEqual(['mediabucket', ['FULL_CONTROL']])
  await client.send(new PutObjectAclCommand({ Bucket, Key: 'a', ACL: 'private' }))
  const refused = { name: 'AccessControlListNotSupported' }
  await expect(put(Bucket, 'a', 'b', { ACL: 'public-read' })).rejects.toMatchObject(refused)
  await expect(
    client.send(new PutObjectAclCommand({ Bucket, Key: 'a', ACL: 'public-read' })),
  ).rejects.toMatchObject(refused)
  expect(await textOf(Bucket, 'a')).toBe('a')
  expect(await errorCode(await fetch(`${door.endpoint}/${Bucket}/a`))).toBe('403 AccessDenied')
})

test('SP11 everybody reads public objects of a bucket that allows them, also smaller pictures', async () => {
  const Bucket = await newBucket()
  const url = `${door.endpoint}/${Bucket}/a.png`
  await door.server.command('bucket', 'set', Bucket, '--public-keys', 'on')
  const background = { r: 200, g: 40, b: 40 }
  const picture = await sharp({ create: { width: 600, height: 600, channels: 3, background } })
    .png()
    .toBuffer()
  await put(Bucket, 'a.png', picture, { ContentType: 'image/png', ACL: 'public-read' })
  await put(Bucket, 'private.png', picture, { ContentType: 'image/png' })
  const { Grants = [] } = await client.send(new GetObjectAclCommand({ Bucket, Key: 'a.png' }))
  expect(Grants.at(-1)).toMatchObject({ Permission: 'READ', Grantee: { Type: 'Group' } })
  const response = await fetch(url)
  expect(response.headers.get('cache-control')).toBe('public, no-cache')
  expect(Buffer.from(await response.arrayBuffer()).equals(picture)).toBe(true)
  const etag = response.headers.get('etag') ?? ''
  expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).toBe(304)
  expect((await fetch(`${url}?variant=thumb`)).headers.get('content-type')).toBe('image/webp')
  expect(await errorCode(await fetch(`${url}?response-content-type=text/html`))).toBe('400 InvalidRequest')
  for (const [path, init] of [
    ['/private.png', {}],
    ['', {}],
    ['?list-type=2', {}],
    ['/a.png?acl', {}],
    ['/a.png', { method: 'DELETE' }],
    ['/a.png', { method: 'PUT', body: 'x' }],
  ] as const)
    expect(await errorCode(await fetch(`${door.endpoint}/${Bucket}${path}`, init)), path).toBe(
      '403 AccessDenied',
    )
  await client.send(new PutObjectAclCommand({ Bucket, Key: 'a.png', ACL: 'private' }))
  expect(await errorCode(await fetch(url))).toBe('403 AccessDenied')
  await client.send(new PutObjectAclCommand({ Bucket, Key: 'a.png', ACL: 'public-read' }))
  expect((await fetch(url)).status).toBe(200)
  await door.server.command('bucket', 'set', Bucket, '--public-keys', 'off')
  expect(await errorCode(await fetch(url))).toBe('403 AccessDenied')
})

test('SP2 a signed URL reads or stores what it names, until it expires', async () => {
  const Bucket = await newBucket()
  await put(Bucket, 'a b', 'text')
  const get = new GetObjectCommand({ Bucket, Key: 'a b', ResponseContentType: 'text/html' })
  const url = await getSignedUrl(client, get, { expiresIn: 604_800 })
  const response = await fetch(url)
  expect([await response.text(), response.headers.get('content-disposition')]).toEqual(['text', 'attachment'])
  for (const changed of [
    url.replace('a%20b', 'a%20c'),
    url.replace('text%2Fhtml', 'text%2Fxml'),
    `${url}&acl`,
  ])
    expect(await errorCode(await fetch(changed)), changed).toBe('403 SignatureDoesNotMatch')
  expect(await errorCode(await fetch(url, { method: 'PUT', body: 'x' }))).toBe('403 SignatureDoesNotMatch')
  expect(await errorCode(await fetch(url.replace('=604800', '=604801')))).toBe('403 AccessDenied')
  const old = { expiresIn: 60, signingDate: new Date(Date.now() - 61_000) }
  expect(await errorCode(await fetch(await getSignedUrl(client, get, old)))).toBe('403 AccessDenied')
  const early = { expiresIn: 60, signingDate: new Date(Date.now() + 16 * 60_000) }
  expect(await errorCode(await fetch(await getSignedUrl(client, get, early)))).toBe('403 AccessDenied')
  const store = new PutObjectCommand({ Bucket, Key: 'c', Metadata: { one: '1' } })
  const stored = await fetch(await getSignedUrl(client, store), { method: 'PUT', body: 'new' })
  expect(stored.status).toBe(200)
  expect((await client.send(new HeadObjectCommand({ Bucket, Key: 'c' }))).Metadata).toMatchObject({
    one: '1',
  })
})

test('O3 no line of the log has a key, in a path or in a URL that is signed', async () => {
  const Bucket = await newBucket()
  await put(Bucket, 'payroll/anna secret.txt', 'x')
  await textOf(Bucket, 'payroll/anna secret.txt')
  await expect(textOf(Bucket, 'payroll/unknown secret')).rejects.toMatchObject({ name: 'NoSuchKey' })
  const url = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key: 'payroll/anna secret.txt' }))
  expect((await fetch(url)).status).toBe(200)
  await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'payroll/anna secret' }))
  const lines = () => door.server.log().filter(({ path }) => path === `/${Bucket}/*`)
  await expect.poll(() => lines().length).toBe(4)
  expect(JSON.stringify(door.server.log())).not.toMatch(/payroll|secret|Signature=/)
})
