// minio: buckets, streams in parts, statistics, lists, copies, signed URLs and deletes.
import assert from 'node:assert/strict'
import { createReadStream, readFileSync } from 'node:fs'
import { Client, CopyConditions } from 'minio'
import { big, bucket, clientOptions, endpoint, md5, notes, refuses, region, same } from './files.js'

const { hostname, port } = new URL(endpoint)
const options = {
  endPoint: hostname,
  port: Number(port),
  useSSL: false,
  accessKey: clientOptions.credentials.accessKeyId,
  secretKey: clientOptions.credentials.secretAccessKey,
}
const client = new Client({ ...options, partSize: 5 * 1024 * 1024 })
const read = async (stream) => Buffer.concat(await stream.toArray())
const rows = (stream) => stream.toArray()

assert.equal(await client.bucketExists(bucket), true)
assert.equal(await client.bucketExists(`${bucket}-none`), false)
await client.makeBucket(`${bucket}-2`, region)
assert.ok((await client.listBuckets()).some(({ name }) => name === `${bucket}-2`))
await client.removeBucket(`${bucket}-2`)

const name = 'notes/Größe & so+on.txt'
const put = await client.putObject(bucket, name, notes, notes.length, {
  'Content-Type': 'text/x-notes',
  'X-Amz-Meta-Color': 'blue',
})
assert.equal(put.etag, md5(notes))
const stat = await client.statObject(bucket, name)
assert.deepEqual(
  [stat.size, stat.etag, stat.metaData['content-type'], stat.metaData.color],
  [notes.length, put.etag, 'text/x-notes', 'blue'],
)
same(await read(await client.getObject(bucket, name)), notes)
await client.putObject(bucket, 'big.bin', createReadStream('files/big.bin'))
same(await read(await client.getObject(bucket, 'big.bin')), big)
assert.match((await client.statObject(bucket, 'big.bin')).etag, /-4$/)
same(
  await read(await client.getPartialObject(bucket, 'big.bin', 5_000_000, 1234)),
  big.subarray(5_000_000, 5_001_234),
)
await client.fPutObject(bucket, 'file.bin', 'files/big.bin', { 'Content-Type': 'video/x-big' })
await client.fGetObject(bucket, 'file.bin', 'got.bin')
same(readFileSync('got.bin'), big)
assert.deepEqual(await rows(client.listIncompleteUploads(bucket, '', true)), [])

const listed = await rows(client.listObjectsV2(bucket, '', true))
assert.deepEqual(
  listed.map(({ name, size }) => [name, size]),
  [
    ['big.bin', big.length],
    ['file.bin', big.length],
    [name, notes.length],
  ],
)
assert.deepEqual(
  (await rows(client.listObjects(bucket, '', false))).map((row) => row.name ?? row.prefix).toSorted(),
  ['big.bin', 'file.bin', 'notes/'],
)
assert.ok(Math.abs(listed[0].lastModified - Date.now()) < 600_000)

const conditions = new CopyConditions()
conditions.setMatchETag(put.etag)
await client.copyObject(bucket, 'copied.txt', `/${bucket}/${name}`, conditions)
same(await read(await client.getObject(bucket, 'copied.txt')), notes)
conditions.setMatchETag('other')
// A gateway of 2021 ignores it.
if (process.env.OLD_GATEWAY !== '1')
  await refuses('PreconditionFailed', client.copyObject(bucket, 'no.txt', `/${bucket}/${name}`, conditions))

const got = await fetch(
  await client.presignedGetObject(bucket, name, 60, { 'response-content-type': 'text/x-signed' }),
)
assert.equal(got.headers.get('content-type'), 'text/x-signed')
same(Buffer.from(await got.arrayBuffer()), notes)
const target = await client.presignedPutObject(bucket, 'signed.bin', 60)
assert.equal((await fetch(target, { method: 'PUT', body: notes })).status, 200)
same(await read(await client.getObject(bucket, 'signed.bin')), notes)

await client.removeObject(bucket, name)
await client.removeObjects(bucket, ['big.bin', 'file.bin', 'copied.txt', 'signed.bin', 'nothing'])
assert.deepEqual(await rows(client.listObjectsV2(bucket, '', true)), [])
await refuses('NotFound', client.statObject(bucket, name))
await refuses('NoSuchKey', client.getObject(bucket, name))
await refuses('SignatureDoesNotMatch', new Client({ ...options, region, secretKey: 'wrong' }).listBuckets())
