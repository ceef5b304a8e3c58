import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { errorCode, makePair, rawRequest, sendSigned, signTarget, useS3Door } from '../harness/s3-door.ts'
import { until } from '../harness/until.ts'

// Limits of buckets and tokens at the port of S3, and what is refused before a body is sent.

const door = useS3Door({ MEDIABUCKET_MAX_FILE_SIZE: '20MB' })
const { client, newBucket, put } = door

/** The first line of the response to a PUT of a body of this length, of which nothing is sent before it. */
async function expectContinue(target: string, length: number, headers: Record<string, string> = {}) {
  const { host } = door
  const signed = signTarget(door.pair, host, target, {
    ...{ method: 'PUT', payloadHash: 'UNSIGNED-PAYLOAD' },
    headers: { 'content-length': `${length}`, expect: '100-continue', ...headers },
  })
  using connection = await openConnection(door.endpoint)
  connection.send(rawRequest('PUT', target, signed.headers))
  await until('a response', () => connection.received().includes('\r\n\r\n'))
  const [, code = ''] = /<Code>(\w+)</.exec(connection.received()) ?? []
  return `${connection.received().slice(9, 12)} ${code}`
}

test('OK2 an object that replaces another one needs only the room that this leaves', async () => {
  // Larger than what is stored with its row, and smaller.
  for (const size of [900_000, 9_000]) {
    const Bucket = await newBucket('--max-items', '1', '--max-bytes', `${size}`)
    await put(Bucket, 'a', 'x'.repeat(size - 10))
    await put(Bucket, 'a', 'y'.repeat(size))
    await expect(put(Bucket, 'a', 'z'.repeat(size + 1))).rejects.toMatchObject({ name: 'QuotaExceeded' })
    await expect(put(Bucket, 'b', 'z')).rejects.toMatchObject({ name: 'QuotaExceeded' })
    const { Contents } = await client.send(new ListObjectsV2Command({ Bucket }))
    expect(Contents).toMatchObject([{ Key: 'a', Size: size }])
    expect(await expectContinue(`/${Bucket}/a`, size)).toBe('100 ')
    expect(await expectContinue(`/${Bucket}/a`, size + 1)).toBe('403 QuotaExceeded')
    expect(await expectContinue(`/${Bucket}/b`, 1)).toBe('403 QuotaExceeded')
  }
})

test('OK2 an object that goes to the trash keeps its bytes there', async () => {
  const Bucket = await newBucket('--max-items', '1', '--max-bytes', '1000', '--trash-days', '5')
  await put(Bucket, 'a', 'x'.repeat(600))
  await put(Bucket, 'a', 'x'.repeat(400))
  await expect(put(Bucket, 'a', 'x')).rejects.toMatchObject({ name: 'QuotaExceeded' })
})

test('U11, T10 objects beyond the limits of the service, the bucket and the token are refused before they are sent', async () => {
  const Bucket = await newBucket('--max-file-size', '10MB')
  expect(await expectContinue(`/${Bucket}/a`, 10_000_000)).toBe('100 ')
  expect(await expectContinue(`/${Bucket}/a`, 10_000_001)).toBe('400 EntityTooLarge')
  expect(await expectContinue(`/${Bucket}/a`, 5e12)).toBe('400 EntityTooLarge')
  const token = await makePair(
    door.server,
    ...['--bucket', Bucket, '--scope', 'media:write', '--max-file-size', '1000', '--max-items', '1'],
  )
  const url = `${door.endpoint}/${Bucket}/b`
  const send = (body: string) => sendSigned(token, url, { method: 'PUT', body })
  expect(await errorCode(await send('x'.repeat(1_001)))).toBe('400 EntityTooLarge')
  expect(await errorCode(await send('x'))).toBe('200 ')
  expect(await errorCode(await send('x'))).toMatch(/^403 /)
})

test('SP8 a bucket that removes metadata refuses what it would change before it is sent, and keeps all others', async () => {
  const Bucket = await newBucket('--remove-metadata', 'on')
  const picture = await sharp({ create: { width: 9, height: 9, channels: 3, background: '#123' } })
    .png()
    .toBuffer()
  const refused = '400 InvalidRequest'
  expect(await expectContinue(`/${Bucket}/a.png`, picture.byteLength)).toBe(refused)
  expect(await expectContinue(`/${Bucket}/a.JPG`, picture.byteLength)).toBe(refused)
  expect(await expectContinue(`/${Bucket}/a`, 5, { 'content-type': 'image/jpg; x=y' })).toBe(refused)
  expect(await expectContinue(`/${Bucket}/a.bin`, picture.byteLength)).toBe('100 ')
  await expect(put(Bucket, 'a.bin', picture)).rejects.toMatchObject({ name: 'InvalidRequest' })
  await put(Bucket, 'a.txt', 'text', { ContentType: 'text/plain' })
  const create = (Key: string, more = {}) =>
    client.send(new CreateMultipartUploadCommand({ Bucket, Key, ...more }))
  await expect(create('a.mp4')).rejects.toMatchObject({ name: 'InvalidRequest' })
  await expect(create('a', { ContentType: 'video/mp4' })).rejects.toMatchObject({ name: 'InvalidRequest' })
  expect((await client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads).toBeUndefined()
  const { UploadId } = await create('a.bin')
  const part = { Bucket, Key: 'a.bin', UploadId }
  const { ETag } = await client.send(new UploadPartCommand({ ...part, PartNumber: 1, Body: picture }))
  const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] }
  await expect(
    client.send(new CompleteMultipartUploadCommand({ ...part, MultipartUpload })),
  ).rejects.toMatchObject({ name: 'InvalidRequest' })
  const { Contents } = await client.send(new ListObjectsV2Command({ Bucket }))
  expect(Contents?.map(({ Key }) => Key)).toEqual(['a.txt'])
})

test('A7 a document of a token that is revoked while it arrives changes nothing', async () => {
  const Bucket = await newBucket()
  await put(Bucket, 'a', 'x')
  const own = await makePair(door.server, '--bucket', Bucket, '--scope', 'media:read,media:delete')
  const body = '<Delete><Object><Key>a</Key></Object></Delete>'
  const target = `/${Bucket}?delete`
  const { headers } = signTarget(own, door.host, target, { method: 'POST', body })
  const request = rawRequest('POST', target, { ...headers, expect: '100-continue' }, body)
  using connection = await openConnection(door.endpoint)
  connection.send(request.subarray(0, -1))
  // The key is verified before the body is read.
  await until('a response', () => connection.received().includes('100 Continue'))
  await door.server.command('token', 'revoke', own.accessKeyId)
  connection.send(request.subarray(-1))
  await connection.closed
  expect(connection.received()).toContain('<Code>InvalidAccessKeyId</Code>')
  expect((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount).toBe(1)
})
