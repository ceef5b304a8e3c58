import {
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { beforeAll, expect, test } from 'vitest'
import { type Connection, openConnection } from '../harness/connection.ts'
import { forgetPeak, memory } from '../harness/resources.ts'
import { codeOf, rawRequest, signTarget, useS3Door } from '../harness/s3-door.ts'
import { until } from '../harness/until.ts'

const door = useS3Door()
const { client } = door
let UploadId = ''
let part = ''
const Bucket = 'documents'
const mebibyte = 1024 * 1024

beforeAll(async () => {
  await client.send(new CreateBucketCommand({ Bucket }))
  await client.send(new PutObjectCommand({ Bucket, Key: 'kept', Body: 'x' }))
  const created = await client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'a' }))
  UploadId = created.UploadId ?? ''
  const { ETag } = await client.send(
    new UploadPartCommand({ Bucket, Key: 'a', UploadId, PartNumber: 1, Body: 'x' }),
  )
  part = `<Part><PartNumber>1</PartNumber><ETag>${ETag}</ETag></Part>`
})

/** The requests that read a document, each with the name of its root. */
const requests = () =>
  [
    ['POST', `/${Bucket}/a?uploadId=${UploadId}`, 'CompleteMultipartUpload'],
    ['POST', `/${Bucket}?delete`, 'Delete'],
    ['PUT', `/${Bucket}/kept?acl`, 'AccessControlPolicy'],
    ['PUT', `/${Bucket}?acl`, 'AccessControlPolicy'],
    ['PUT', `/${Bucket}?versioning`, 'VersioningConfiguration'],
    ['PUT', '/new-bucket', 'CreateBucketConfiguration'],
  ] as const

async function expectUnchanged() {
  const { Contents } = await client.send(new ListObjectsV2Command({ Bucket }))
  expect(Contents?.map(({ Key }) => Key)).toEqual(['kept'])
  const { Uploads } = await client.send(new ListMultipartUploadsCommand({ Bucket }))
  expect(Uploads?.map(({ Key }) => Key)).toEqual(['a'])
}

const entities = Array.from(
  { length: 12 },
  (_, index) => `<!ENTITY e${index} "${`&e${index - 1};`.repeat(10)}">`,
).join('')

test('SP4 documents with entities, of other shapes and without end are refused, and change nothing', async () => {
  const texts = (root: string) => [
    `<!DOCTYPE ${root} [${entities}]><${root}>&e11;</${root}>`,
    `<!DOCTYPE ${root} SYSTEM "file:///etc/passwd"><${root}/>`,
    `<!DOCTYPE ${root} [<!ENTITY x SYSTEM "http://127.0.0.1/">]><${root}>&x;</${root}>`,
    `<?xml-stylesheet href="http://127.0.0.1/"?><${root}/>`,
    `<${root}><![CDATA[<Key>kept</Key>]]></${root}>`,
    `<${root}>${'<a>'.repeat(100_000)}`,
    `<${root}>${'<a/>'.repeat(200_000)}</${root}>`,
    `<${root} ${'a="b" '.repeat(100_000)}/>`,
    `<${root}>${'&#65;'.repeat(100_000)}</${root}>`,
    `<${root}>&undefined;</${root}>`,
    `<${root}><!-- ${'-'.repeat(100_000)} --></${root}>`,
    `<${root}`,
    `<${root}>`,
    `<${root}></Other>`,
    `<Other/>`,
    `<${root}/><${root}/>`,
    `<${root}/>\0`,
    `{"${root}": 1}`,
    '\ufffe<\0',
    ' ',
    'x'.repeat(2 * mebibyte),
    '<'.repeat(2 * mebibyte),
    'x'.repeat(5 * mebibyte),
  ]
  for (const [method, target, root] of requests())
    for (const body of texts(root)) {
      const response = await door.send(target, { method, body })
      expect(codeOf(response), `${target} ${body.slice(0, 60)}`).toBe('400 MalformedXML')
    }
  await expectUnchanged()
})

test('SP9 a completion of 100,000 parts, of parts in any order and of numbers beyond all is refused', async () => {
  const [[, target]] = requests()
  const complete = (parts: string) =>
    door.send(target, {
      ...{ method: 'POST', body: `<CompleteMultipartUpload>${parts}</CompleteMultipartUpload>` },
    })
  for (const [parts, code] of [
    [part.repeat(10_001), 'MalformedXML'],
    ['<Part><PartNumber>1</PartNumber><ETag>a</ETag></Part>'.repeat(70_000), 'MalformedXML'],
    ['<Part/>'.repeat(100_000), 'MalformedXML'],
    ['<P/>'.repeat(99_000), 'MalformedXML'],
    ['', 'MalformedXML'],
    [part.replace('1<', '0<'), 'InvalidPart'],
    [part.replace('1<', '99999<'), 'InvalidPart'],
    [part.replace('1<', '-1<'), 'MalformedXML'],
    [part.replace('1<', '1e0<'), 'MalformedXML'],
    [part.replace('1<', '100000<'), 'MalformedXML'],
    [part.replace(/<ETag>.*<\/ETag>/, ''), 'MalformedXML'],
    [part.replace(/<ETag>.*<\/ETag>/, '<ETag></ETag>'), 'InvalidPart'],
    [part.replace(/<ETag>.*<\/ETag>/, '<ETag>&#x30;</ETag>'), 'InvalidPart'],
    [part.replace('1<', '2<') + part, 'InvalidPartOrder'],
    [part.replace('</Part>', '<ChecksumCRC32>bad</ChecksumCRC32></Part>'), 'MalformedXML'],
  ] as const)
    expect(codeOf(await complete(parts)), parts.slice(0, 80)).toBe(`400 ${code}`)
  await expectUnchanged()
})

test('SP4 Delete of too many keys, of none and of versions is refused, and deletes nothing', async () => {
  const remove = (keys: string) =>
    door.send(`/${Bucket}?delete`, {
      method: 'POST',
      body: `<Delete>${keys}</Delete>`,
    })
  const key = '<Object><Key>kept</Key></Object>'
  for (const keys of [key.repeat(1_001), '', '<Object/>', '<Object><Key/></Object>', '<Key>kept</Key>'])
    expect(codeOf(await remove(keys))).toBe('400 MalformedXML')
  const version = '<Object><Key>kept</Key><VersionId>1</VersionId></Object>'
  expect(codeOf(await remove(version))).toBe('501 NotImplemented')
  const other = '<Object><Key>kept</Key><ETag>"other"</ETag></Object>'
  expect((await remove(other)).body).toContain('<Code>PreconditionFailed</Code>')
  await expectUnchanged()
})

test('N5 many large documents at once take a bounded memory', async () => {
  const { host } = door
  const body = `<Delete>${'<Object><Key>none</Key></Object>'.repeat(110_000)}</Delete>`
  const target = `/${Bucket}?delete`
  const { headers } = signTarget(door.pair, host, target, { method: 'POST', body })
  const request = rawRequest('POST', target, headers, body)
  expect(request.byteLength).toBeGreaterThan(3 * mebibyte)
  await forgetPeak(door.server)
  const before = await memory(door.server)
  const connections: Connection[] = []
  try {
    for (let count = 0; count < 60; count += 1) {
      const connection = await openConnection(door.endpoint)
      connections.push(connection)
      // All but the last byte.
      connection.send(request.subarray(0, -1))
    }
    await until('documents that are refused', () =>
      connections.some((connection) => connection.received().includes('<Code>SlowDown</Code>')),
    )
    expect((await door.send(`/${Bucket}/kept`)).body).toBe('x')
    for (const connection of connections) connection.send(request.subarray(-1))
    await Promise.all(connections.map(({ closed }) => closed))
    const { peak } = await memory(door.server)
    console.log(`60 documents of 3.4 MiB: ${Math.round((peak - before.now) / mebibyte)} MiB more`)
    expect(peak - before.now).toBeLessThan(200 * mebibyte)
    for (const connection of connections)
      expect(connection.received()).toMatch(/<Code>(?:SlowDown|MalformedXML)<\/Code>/)
  } finally {
    for (const connection of connections) connection[Symbol.dispose]()
  }
  await expectUnchanged()
})
