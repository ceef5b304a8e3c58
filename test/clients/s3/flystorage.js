// flystorage: a file storage on a bucket.
import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import { S3Client } from '@aws-sdk/client-s3'
import { AwsS3StorageAdapter } from '@flystorage/aws-s3'
import { FileStorage } from '@flystorage/file-storage'
import { big, bucket, clientOptions, md5, notes, refuses, same } from './files.js'

const isOld = process.env.OLD_GATEWAY === '1'
const client = new S3Client({
  ...clientOptions,
  ...(isOld && { requestChecksumCalculation: 'WHEN_REQUIRED', responseChecksumValidation: 'WHEN_REQUIRED' }),
})
const storage = new FileStorage(new AwsS3StorageAdapter(client, { bucket, prefix: 'app' }))
await storage.write('notes/first.txt', notes.toString(), {
  mimeType: 'text/x-notes',
  visibility: 'private',
  cacheControl: 'max-age=60',
})
await storage.write('big.bin', createReadStream('files/big.bin'))
same(await storage.readToBuffer('big.bin'), big)
assert.equal(await storage.readToString('notes/first.txt'), notes.toString())
assert.deepEqual(
  [
    await storage.mimeType('notes/first.txt'),
    await storage.fileSize('notes/first.txt'),
    await storage.checksum('notes/first.txt', { algo: 'etag' }),
  ],
  ['text/x-notes', notes.length, md5(notes)],
)
assert.ok(Math.abs((await storage.lastModified('notes/first.txt')) - Date.now()) < 600_000)
assert.deepEqual(
  [
    await storage.fileExists('notes/first.txt'),
    await storage.fileExists('nothing'),
    await storage.directoryExists('notes'),
  ],
  [true, false, true],
)
await storage.changeVisibility('notes/first.txt', 'public')
assert.equal(await storage.visibility('notes/first.txt'), 'public')
await storage.changeVisibility('notes/first.txt', 'private')
assert.equal(await storage.visibility('notes/first.txt'), 'private')
await storage.createDirectory('empty')
await storage.copyFile('notes/first.txt', 'notes/copied.txt')
await storage.moveFile('notes/copied.txt', 'notes/moved.txt')
const listed = await storage.list('', { deep: true }).toArray()
assert.deepEqual(listed.map(({ path, type }) => `${type} ${path}`).toSorted(), [
  'directory empty',
  'file big.bin',
  'file notes/first.txt',
  'file notes/moved.txt',
])
const response = await fetch(
  await storage.temporaryUrl('notes/moved.txt', { expiresAt: Date.now() + 60_000 }),
)
same(Buffer.from(await response.arrayBuffer()), notes)
const upload = await storage.prepareUpload('signed.txt', {
  expiresAt: Date.now() + 60_000,
  headers: { 'Content-Type': 'text/x-signed' },
})
assert.equal(
  (await fetch(upload.url, { method: upload.method, body: notes, headers: upload.headers })).status,
  200,
)
same(await storage.readToBuffer('signed.txt'), notes)
await storage.deleteFile('signed.txt')
await refuses('File was not found', storage.readToString('signed.txt'))
await storage.deleteDirectory('notes')
assert.equal(await storage.fileExists('notes/first.txt'), false)
