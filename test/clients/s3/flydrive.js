// flydrive: a disk whose files are in a bucket.
import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import { Disk } from 'flydrive'
import { S3Driver } from 'flydrive/drivers/s3'
import { big, bucket, clientOptions, md5, notes, refuses, same } from './files.js'

const isOld = process.env.OLD_GATEWAY === '1'
const disk = new Disk(
  new S3Driver({
    ...clientOptions,
    bucket,
    visibility: 'private',
    ...(isOld && {
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    }),
  }),
)
await disk.put('notes/first.txt', notes, { contentType: 'text/x-notes' })
await disk.putStream('big.bin', createReadStream('files/big.bin'), { contentLength: big.length })
same(await disk.getBytes('big.bin'), big)
assert.equal(await disk.get('notes/first.txt'), notes.toString())
const found = await disk.getMetaData('notes/first.txt')
assert.deepEqual(
  [found.contentType, found.contentLength, found.etag],
  ['text/x-notes', notes.length, `"${md5(notes)}"`],
)
assert.ok(Math.abs(found.lastModified - Date.now()) < 600_000)
assert.deepEqual([await disk.exists('notes/first.txt'), await disk.exists('nothing')], [true, false])
assert.equal(await disk.getVisibility('notes/first.txt'), 'private')
await disk.setVisibility('notes/first.txt', 'public')
assert.equal(await disk.getVisibility('notes/first.txt'), 'public')
await disk.setVisibility('notes/first.txt', 'private')
await disk.copy('notes/first.txt', 'notes/copied.txt')
await disk.move('notes/copied.txt', 'notes/moved.txt')
const { objects } = await disk.listAll('notes')
assert.deepEqual(
  [...objects].map(({ key }) => key),
  ['notes/first.txt', 'notes/moved.txt'],
)
const response = await fetch(await disk.getSignedUrl('notes/moved.txt', { contentDisposition: 'attachment' }))
assert.equal(response.headers.get('content-disposition'), 'attachment')
same(Buffer.from(await response.arrayBuffer()), notes)
const target = await disk.getSignedUploadUrl('signed.txt', { contentType: 'text/x-signed' })
assert.equal(
  (await fetch(target, { method: 'PUT', body: notes, headers: { 'content-type': 'text/x-signed' } })).status,
  200,
)
same(await disk.getBytes('signed.txt'), notes)
await disk.delete('signed.txt')
await refuses('E_CANNOT_READ_FILE', disk.get('signed.txt'))
await disk.deleteAll('notes')
assert.equal(await disk.exists('notes/first.txt'), false)
assert.equal(await disk.exists('big.bin'), true)
