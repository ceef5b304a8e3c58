import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  AbortMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { type Connection, openConnection } from '../harness/connection.ts'
import { rawRequest, sendSigned, signTarget, useS3Door } from '../harness/s3-door.ts'
import { slowDisk } from '../harness/slow-disk.ts'
import { until } from '../harness/until.ts'

const disk = slowDisk()
const door = useS3Door({ NODE_OPTIONS: disk.options, MEDIABUCKET_IDLE_TIMEOUT: '8s' })
const { client } = door
const Bucket = 'slow'

beforeAll(async () => {
  // A response begins after a quarter of this time.
  await client.send(new CreateBucketCommand({ Bucket }))
})
afterEach(disk.release)

const blobs = (): string[] =>
  readdirSync(join(door.server.data, 'blobs'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)

/** An upload whose parts the disk does not return, and the document that completes it. */
async function heldUpload(Key: string) {
  const { UploadId = '' } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }))
  const part = { Bucket, Key, UploadId, PartNumber: 1, Body: Buffer.alloc(1_000_000, Key) }
  const { ETag } = await client.send(new UploadPartCommand(part))
  await disk.hold(blobs())
  const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${ETag}</ETag></Part></CompleteMultipartUpload>`
  return { UploadId, target: `/${Bucket}/${Key}?uploadId=${UploadId}`, body }
}

async function send(
  method: string,
  target: string,
  { body = '', headers = {} }: { readonly body?: string; readonly headers?: Record<string, string> },
): Promise<Connection> {
  const { host } = door
  const connection = await openConnection(door.endpoint)
  const signed = signTarget(door.pair, host, target, { method, headers, body })
  connection.send(rawRequest(method, target, signed.headers, body))
  return connection
}

/** The response has begun, and shows two signs of life. */
const isAlive = (connection: Connection) =>
  until('white space', () => /^HTTP\/1\.1 200 .*\?>\n.*1\r\n \r\n1\r\n \r\n$/s.test(connection.received()))

/** The chunks of the body of a response. */
const bodyOf = (connection: Connection): string =>
  connection
    .received()
    .split('\r\n\r\n')
    .slice(1)
    .join('\r\n\r\n')
    .replace(/(?:^|\r\n)[\da-f]+\r\n/g, '')

test('SP9 a slow completion shows signs of life, and then its result', async () => {
  const { target, body } = await heldUpload('done')
  using connection = await send('POST', target, { body })
  await isAlive(connection)
  expect((await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'done' }))).KeyCount).toBe(0)
  disk.release()
  await connection.closed
  expect(bodyOf(connection)).toMatch(
    /^<\?xml version="1\.0" encoding="UTF-8"\?>\n {2,}<CompleteMultipartUploadResult .*-1&quot;<\/ETag><\/CompleteMultipartUploadResult>\r\n$/s,
  )
  const { ContentLength } = await client.send(new GetObjectCommand({ Bucket, Key: 'done' }))
  expect(ContentLength).toBe(1_000_000)
})

test('SP9 the document of a slow completion can be that of an error', async () => {
  const { target, body, UploadId } = await heldUpload('aborted')
  using connection = await send('POST', target, { body })
  await isAlive(connection)
  await client.send(new AbortMultipartUploadCommand({ Bucket, Key: 'aborted', UploadId }))
  disk.release()
  await connection.closed
  expect(bodyOf(connection)).toMatch(/\n {2,}<Error><Code>NoSuchUpload<\/Code>.*<\/Error>\r\n$/s)
  expect((await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'aborted' }))).KeyCount).toBe(0)
})

test('MU9 a completion continues without its client, whose repetition gets the result', async () => {
  const { target, body } = await heldUpload('left')
  const connection = await send('POST', target, { body })
  await isAlive(connection)
  connection[Symbol.dispose]()
  await connection.closed
  using again = await send('POST', target, { body })
  await isAlive(again)
  disk.release()
  await again.closed
  expect(bodyOf(again)).toContain('</CompleteMultipartUploadResult>')
  const last = await sendSigned(door.pair, `${door.endpoint}${target}`, { method: 'POST', body })
  expect(await last.text()).toContain('-1&quot;</ETag>')
  expect((await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'left' }))).KeyCount).toBe(1)
})

test('SP9 a slow copy shows signs of life, and then its result', async () => {
  const Body = Buffer.alloc(1_000_000, 's')
  await client.send(new PutObjectCommand({ Bucket, Key: 'source', Body }))
  await disk.hold(blobs())
  const headers = { 'x-amz-copy-source': `/${Bucket}/source` }
  using connection = await send('PUT', `/${Bucket}/copy`, { headers })
  await isAlive(connection)
  disk.release()
  await connection.closed
  expect(bodyOf(connection)).toMatch(/\n {2,}<CopyObjectResult .*<\/CopyObjectResult>\r\n$/s)
})
