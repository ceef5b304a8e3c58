// unstorage: values in a bucket.
import assert from 'node:assert/strict'
import { createStorage } from 'unstorage'
import s3Driver from 'unstorage/drivers/s3'
import { accessKeyId, big, bucket, endpoint, notes, refuses, region, same, secretAccessKey } from './files.js'

const options = { accessKeyId, secretAccessKey, endpoint, bucket, region }
const storage = createStorage({ driver: s3Driver(options) })
await storage.setItem('notes:first', { color: 'blue', Größe: 1 })
await storage.setItemRaw('notes:second', notes)
await storage.setItemRaw('big', big)
assert.deepEqual(await storage.getItem('notes:first'), { color: 'blue', Größe: 1 })
same(Buffer.from(await storage.getItemRaw('notes:second')), notes)
same(Buffer.from(await storage.getItemRaw('big')), big)
assert.deepEqual(
  [await storage.hasItem('big'), await storage.hasItem('nothing'), await storage.getItem('nothing')],
  [true, false, null],
)
assert.deepEqual((await storage.getKeys()).toSorted(), ['big', 'notes:first', 'notes:second'])
await storage.removeItem('big')
assert.equal(await storage.hasItem('big'), false)
await storage.clear()
assert.deepEqual(await storage.getKeys(), [])
const wrong = createStorage({ driver: s3Driver({ ...options, secretAccessKey: 'wrong' }) })
await refuses('SignatureDoesNotMatch', wrong.setItem('refused', 'text'))
