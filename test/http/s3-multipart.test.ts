import { createHash, randomBytes } from 'node:crypto'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  GetObjectAttributesCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { beforeAll, expect, test } from 'vitest'
import { blobsIn } from '../harness/resources.ts'
import { errorCode, sendSigned, useS3Door } from '../harness/s3-door.ts'

const door = useS3Door()
const { client } = door
const Bucket = 'parts'
const partSize = 5 * 1024 * 1024

beforeAll(async () => {
  await client.send(new CreateBucketCommand({ Bucket }))
})

const md5 = (bytes: Uint8Array) => createHash('md5').update(bytes).digest()

async function create(Key: string, more = {}): Promise<string> {
  const { UploadId = '' } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key, ...more }))
  return UploadId
}

const putPart = (Key: string, UploadId: string, PartNumber: number, Body: Uint8Array, more = {}) =>
  client.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body, ...more }))

test.each(['CRC32', 'CRC32C', 'CRC64NVME', 'SHA256'] as const)(
  'SP9 an upload in parts of a library is one object with the checksum %s',
  async (ChecksumAlgorithm) => {
    const Body = Buffer.alloc(2 * partSize + 1_000, ChecksumAlgorithm)
    const Key = `library/${ChecksumAlgorithm}`
    const upload = new Upload({
      client,
      params: { Bucket, Key, Body, ChecksumAlgorithm },
      partSize,
      queueSize: 2,
    })
    const { ETag } = await upload.done()
    const parts = [
      Body.subarray(0, partSize),
      Body.subarray(partSize, 2 * partSize),
      Body.subarray(2 * partSize),
    ]
    expect(ETag).toBe(`"${md5(Buffer.concat(parts.map(md5))).toString('hex')}-3"`)
    const head = await client.send(new HeadObjectCommand({ Bucket, Key, ChecksumMode: 'ENABLED' }))
    expect(head).toMatchObject({ ETag, ContentLength: Body.length })
    expect(head[`Checksum${ChecksumAlgorithm}`]).toMatch(
      ChecksumAlgorithm === 'CRC64NVME' ? /^[^-]+$/ : /-3$/,
    )
    const part = await client.send(new GetObjectCommand({ Bucket, Key, PartNumber: 3 }))
    expect(part).toMatchObject({ PartsCount: 3, ContentLength: 1_000 })
    expect(
      Buffer.from((await part.Body?.transformToByteArray()) ?? []).equals(parts[2] ?? Buffer.alloc(0)),
    ).toBe(true)
    const partsOf = async (limit: { readonly MaxParts?: number }) => {
      const command = { Bucket, Key, ObjectAttributes: ['ObjectParts' as const], ...limit }
      return (await client.send(new GetObjectAttributesCommand(command))).ObjectParts
    }
    expect(await partsOf({})).toMatchObject({ TotalPartsCount: 3, IsTruncated: false })
    expect(await partsOf({ MaxParts: 2 })).toMatchObject({ IsTruncated: true, NextPartNumberMarker: '2' })
    expect(await partsOf({ MaxParts: 0 })).toMatchObject({ IsTruncated: false })
  },
)

test('SP9 parts and uploads are listed, parts are replaced and copied, and a repeated completion gets the same result', async () => {
  const Key = 'steps/a'
  const UploadId = await create(Key, { Metadata: { one: '1' }, ContentType: 'text/plain' })
  const first = Buffer.alloc(partSize, '1')
  await putPart(Key, UploadId, 1, Buffer.alloc(partSize, 'x'))
  const { ETag: one } = await putPart(Key, UploadId, 1, first)
  await client.send(new PutObjectCommand({ Bucket, Key: 'source ü', Body: '0123456789' }))
  const { CopyPartResult } = await client.send(
    new UploadPartCopyCommand({
      ...{ Bucket, Key, UploadId, PartNumber: 7 },
      ...{ CopySource: encodeURIComponent(`${Bucket}/source ü`), CopySourceRange: 'bytes=2-4' },
    }),
  )
  const listed = await client.send(new ListPartsCommand({ Bucket, Key, UploadId, MaxParts: 1 }))
  expect(listed).toMatchObject({
    IsTruncated: true,
    NextPartNumberMarker: '1',
    Parts: [{ PartNumber: 1, ETag: one, Size: partSize }],
  })
  const uploads = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: 'steps/' }))
  expect(uploads.Uploads).toMatchObject([{ Key, UploadId }])
  const grouped = await client.send(new ListMultipartUploadsCommand({ Bucket, Delimiter: '/' }))
  expect(grouped.CommonPrefixes).toEqual([{ Prefix: 'steps/' }])
  const Parts = [
    { PartNumber: 1, ETag: one },
    { PartNumber: 7, ETag: CopyPartResult?.ETag },
  ]
  const complete = () =>
    client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }))
  const { ETag } = await complete()
  expect((await complete()).ETag).toBe(ETag)
  const object = await client.send(new GetObjectCommand({ Bucket, Key }))
  expect(object).toMatchObject({
    ContentType: 'text/plain',
    ContentLength: partSize + 3,
    Metadata: { one: '1' },
  })
  expect((await object.Body?.transformToString())?.slice(-4)).toBe('1234')
})

test('SP9 wrong parts, numbers and uploads get errors, and an aborted upload is gone', async () => {
  const Key = 'wrong'
  const UploadId = await create(Key)
  const { ETag } = await putPart(Key, UploadId, 2, Buffer.from('small'))
  const { ETag: other } = await putPart(Key, UploadId, 1, Buffer.from('smaller'))
  const complete = (...Parts: { PartNumber: number; ETag: string | undefined }[]) =>
    client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }))
  const cases = [
    [
      [
        { PartNumber: 2, ETag },
        { PartNumber: 1, ETag: other },
      ],
      'InvalidPartOrder',
    ],
    [
      [
        { PartNumber: 1, ETag: other },
        { PartNumber: 2, ETag },
      ],
      'EntityTooSmall',
    ],
    [[{ PartNumber: 1, ETag }], 'InvalidPart'],
    [[{ PartNumber: 3, ETag }], 'InvalidPart'],
  ] as const
  for (const [parts, name] of cases) await expect(complete(...parts), name).rejects.toMatchObject({ name })
  const url = `${door.endpoint}/${Bucket}/${Key}`
  const send = (method: string, query: string, body = 'x') =>
    sendSigned(door.pair, `${url}?${query}`, { method, body })
  expect(await errorCode(await send('PUT', `partNumber=0&uploadId=${UploadId}`))).toBe('400 InvalidArgument')
  expect(await errorCode(await send('PUT', `partNumber=10001&uploadId=${UploadId}`))).toBe(
    '400 InvalidArgument',
  )
  expect(await errorCode(await send('PUT', 'partNumber=1&uploadId=none'))).toBe('404 NoSuchUpload')
  expect(await errorCode(await send('POST', `uploadId=${UploadId}`, '<x/>'))).toBe('400 MalformedXML')
  expect(
    await errorCode(await send('POST', `uploadId=${UploadId}`, '<!DOCTYPE x><CompleteMultipartUpload/>')),
  ).toBe('400 MalformedXML')
  const many = '<Part><PartNumber>1</PartNumber><ETag>a</ETag></Part>'.repeat(10_001)
  expect(
    await errorCode(
      await send(
        'POST',
        `uploadId=${UploadId}`,
        `<CompleteMultipartUpload>${many}</CompleteMultipartUpload>`,
      ),
    ),
  ).toBe('400 MalformedXML')
  await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }))
  await expect(complete({ PartNumber: 2, ETag })).rejects.toMatchObject({ name: 'NoSuchUpload' })
  await expect(client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }))).rejects.toMatchObject(
    { name: 'NoSuchUpload' },
  )
  expect((await client.send(new ListObjectsV2Command({ Bucket, Prefix: Key }))).KeyCount).toBe(0)
})

test('SP3 a body of another SHA-256 than the signed one is stored neither as an object nor as a part, of any size', async () => {
  const { data } = door.server
  const before = await blobsIn(data)
  const UploadId = await create('wrong')
  for (const size of [100, 300_000]) {
    const signing = { method: 'PUT', body: Buffer.alloc(size, 'x'), payloadHash: '0'.repeat(64) }
    for (const query of ['', `?uploadId=${UploadId}&partNumber=1`])
      expect(
        await errorCode(await sendSigned(door.pair, `${door.endpoint}/${Bucket}/wrong${query}`, signing)),
      ).toBe('400 ContentSHA256Mismatch')
  }
  await expect(client.send(new HeadObjectCommand({ Bucket, Key: 'wrong' }))).rejects.toMatchObject({
    name: 'NotFound',
  })
  expect((await client.send(new ListPartsCommand({ Bucket, Key: 'wrong', UploadId }))).Parts ?? []).toEqual(
    [],
  )
  const { stored, temporary } = await blobsIn(data)
  expect([stored <= before.stored, temporary]).toEqual([true, 0])
})

/** Changes one byte of the only file of this size. */
async function damage(size: number): Promise<void> {
  const blobs = join(door.server.data, 'blobs')
  const files = (await readdir(blobs, { recursive: true })).map((name) => join(blobs, name))
  const found: string[] = []
  for (const file of files) if ((await stat(file)).size === size) found.push(file)
  expect(found).toHaveLength(1)
  await using file = await open(found[0] ?? '', 'r+')
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, 100)
  await file.write(Buffer.of((buffer[0] ?? 0) ^ 1), 0, 1, 100)
}

test.each([
  [null, 101],
  ['CRC32', 102],
  ['CRC32C', 103],
  ['SHA256', 104],
] as const)(
  'MU11 a part that was damaged on the disk is not joined, and can be sent again (%s)',
  async (ChecksumAlgorithm, extra) => {
    const more = ChecksumAlgorithm === null ? {} : { ChecksumAlgorithm }
    const Key = `damaged/${ChecksumAlgorithm}`
    const UploadId = await create(Key, more)
    const second = randomBytes(partSize + extra)
    const bytes = [randomBytes(partSize), second]
    const sent = []
    for (const [index, part] of bytes.entries())
      sent.push(await putPart(Key, UploadId, index + 1, part, more))
    const Parts = sent.map(({ ETag, ChecksumCRC32, ChecksumCRC32C, ChecksumSHA256 }, index) => ({
      ...{ ETag, ChecksumCRC32, ChecksumCRC32C, ChecksumSHA256, PartNumber: index + 1 },
    }))
    const complete = () =>
      client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }))
    await damage(second.length)
    await expect(complete()).rejects.toMatchObject({ name: 'InternalError' })
    await expect(client.send(new HeadObjectCommand({ Bucket, Key }))).rejects.toMatchObject({
      name: 'NotFound',
    })
    await putPart(Key, UploadId, 2, second, more)
    await complete()
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }))
    expect(Buffer.concat(bytes).equals((await Body?.transformToByteArray()) ?? Buffer.alloc(0))).toBe(true)
  },
)

test('MU11 an object that was damaged on the disk is not copied as a whole', async () => {
  const bytes = randomBytes(partSize + 77)
  await client.send(new PutObjectCommand({ Bucket, Key: 'rotten', Body: bytes }))
  await damage(bytes.length)
  const CopySource = `${Bucket}/rotten`
  await expect(
    client.send(new CopyObjectCommand({ Bucket, Key: 'copied', CopySource })),
  ).rejects.toMatchObject({ name: 'InternalError' })
  const UploadId = await create('copied')
  await expect(
    client.send(new UploadPartCopyCommand({ Bucket, Key: 'copied', UploadId, PartNumber: 1, CopySource })),
  ).rejects.toMatchObject({ name: 'InternalError' })
  const { Parts = [] } = await client.send(new ListPartsCommand({ Bucket, Key: 'copied', UploadId }))
  expect(Parts).toEqual([])
})
