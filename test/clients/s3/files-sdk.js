// files-sdk: uploads in one request and in parts, ranges, metadata, conditions, lists, signed URLs and deletes.
import assert from 'node:assert/strict'
import { Files } from 'files-sdk'
import { s3 } from 'files-sdk/s3'
import { big, bucket, clientOptions, md5, notes, refuses, same, withoutUrl } from './files.js'

const options = { bucket, ...clientOptions }
const files = new Files({ adapter: s3({ ...options, conditional: true }) })
const bytesOf = async (file) => Buffer.from(await file.arrayBuffer())

const key = 'notes/Größe & so+on.txt'
const uploaded = await files.upload(key, notes, {
  contentType: 'text/x-notes',
  metadata: { color: 'blue' },
  cacheControl: 'max-age=60',
})
assert.deepEqual([uploaded.size, uploaded.etag?.replaceAll('"', '')], [notes.length, md5(notes)])
const head = await files.head(key)
assert.deepEqual(
  [head.size, head.type, withoutUrl(head.metadata)],
  [notes.length, 'text/x-notes', { color: 'blue' }],
)
same(await bytesOf(await files.download(key)), notes)
same(await bytesOf(await files.download(key, { range: { start: 2, end: 5 } })), notes.subarray(2, 6))
await files.upload('big.bin', new Blob([big]), { multipart: { partSize: 5 * 1024 * 1024 } })
same(await bytesOf(await files.download('big.bin')), big)
assert.deepEqual([await files.exists(key), await files.exists('nothing')], [true, false])
if (process.env.OLD_GATEWAY !== '1') {
  await refuses('Conflict', files.upload(key, 'other', { condition: { type: 'create' } }))
}
await files.copy(key, 'copied.txt')
await files.move('copied.txt', 'moved.txt')
const keys = []
for await (const { key } of files.listAll()) keys.push(key)
assert.deepEqual(keys, ['big.bin', 'moved.txt', key])
same(Buffer.from(await (await fetch(await files.url('moved.txt', { expiresIn: 60 }))).arrayBuffer()), notes)
const target = await files.signedUploadUrl('signed.txt', { expiresIn: 60, contentType: 'text/x-signed' })
assert.equal((await fetch(target.url, { method: 'PUT', body: notes, headers: target.headers })).status, 200)
same(await bytesOf(await files.download('signed.txt')), notes)
const { deleted } = await files.delete([key, 'big.bin', 'moved.txt', 'signed.txt'])
assert.equal(deleted.length, 4)
await refuses('NotFound', files.download(key))
const wrong = new Files({
  adapter: s3({ ...options, credentials: { ...clientOptions.credentials, secretAccessKey: 'wrong' } }),
})
await refuses('Unauthorized', wrong.upload('refused.txt', notes))
