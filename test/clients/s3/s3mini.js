// s3mini: objects, parts, lists, conditions, copies, signed URLs and deletes.
import assert from 'node:assert/strict'
import { S3mini } from 's3mini'
import { big, bucket, clientOptions, endpoint, md5, notes, refuses, region, same } from './files.js'

const options = { ...clientOptions.credentials, region, endpoint: `${endpoint}/${bucket}` }
const client = new S3mini(options)
const read = async (key) => Buffer.from((await client.getObjectArrayBuffer(key)) ?? assert.fail(`no ${key}`))

assert.equal(await client.bucketExists(), true)
const key = 'notes/Größe & so+on.txt'
const put = await client.putObject(key, notes, 'text/x-notes', undefined, { 'x-amz-meta-color': 'blue' })
assert.equal(client.sanitizeETag(put.headers.get('etag') ?? ''), md5(notes))
assert.equal(await client.getObject(key), notes.toString())
const response = await client.getObjectResponse(key)
assert.deepEqual(
  [response?.headers.get('content-type'), response?.headers.get('x-amz-meta-color')],
  ['text/x-notes', 'blue'],
)
assert.deepEqual([await client.getContentLength(key), await client.getEtag(key)], [notes.length, md5(notes)])
same(Buffer.from(await (await client.getObjectRaw(key, false, 2, 6)).arrayBuffer()), notes.subarray(2, 6))
assert.deepEqual([await client.objectExists(key), await client.objectExists('nothing')], [true, false])
assert.equal(await client.getObject('nothing'), null)

// In parts, by hand and by itself.
const id = await client.getMultipartUploadId('big.bin', 'video/x-big')
const size = 5 * 1024 * 1024
const parts = []
for (let at = 0; at < big.length; at += size)
  parts.push(await client.uploadPart('big.bin', id, big.subarray(at, at + size), parts.length + 1))
await client.completeMultipartUpload('big.bin', id, parts)
assert.match((await client.getEtag('big.bin')) ?? '', /-4$/)
same(await read('big.bin'), big)
await client.putAnyObject('any.bin', big)
same(await read('any.bin'), big)
const aborted = await client.getMultipartUploadId('aborted.bin')
await client.abortMultipartUpload('aborted.bin', aborted)

const listed = await client.listObjects()
assert.deepEqual(
  listed?.map(({ Key, Size }) => [Key, Number(Size)]),
  [
    ['any.bin', big.length],
    ['big.bin', big.length],
    [key, notes.length],
  ],
)
assert.deepEqual(
  (await client.listObjects('/', 'notes/'))?.map(({ Key }) => Key),
  [key],
)
await client.copyObject(key, 'copied.txt')
await client.moveObject('copied.txt', 'moved.txt')
assert.deepEqual(
  [await client.objectExists('copied.txt'), (await read('moved.txt')).toString()],
  [false, notes.toString()],
)
const url = await client.getPresignedUrl('GET', 'moved.txt', 60)
same(Buffer.from(await (await fetch(url)).arrayBuffer()), notes)

assert.equal(await client.deleteObject(key), true)
assert.deepEqual(await client.deleteObjects(['any.bin', 'big.bin', 'moved.txt']), [true, true, true])
assert.deepEqual((await client.listObjects()) ?? [], [])
await refuses(
  'SignatureDoesNotMatch',
  new S3mini({ ...options, secretAccessKey: 'wrong' }).putObject('refused.txt', notes),
)
