// aws4fetch: plain requests with signatures in headers and in URLs.
import assert from 'node:assert/strict'
import { AwsClient } from 'aws4fetch'
import { accessKeyId, big, bucket, endpoint, md5, notes, region, same, secretAccessKey } from './files.js'

const client = new AwsClient({ accessKeyId, secretAccessKey, service: 's3', region, retries: 0 })
const at = (key) => `${endpoint}/${bucket}/${key}`
const codeOf = async (response) => /<Code>(\w+)/.exec(await response.text())?.[1]

const put = await client.fetch(at('Gr%C3%B6%C3%9Fe%20%26%20so.txt'), {
  method: 'PUT',
  body: notes,
  headers: { 'content-type': 'text/x-notes', 'x-amz-meta-color': 'blue' },
})
assert.deepEqual([put.status, put.headers.get('etag')], [200, `"${md5(notes)}"`])
const head = await client.fetch(at('Gr%C3%B6%C3%9Fe%20%26%20so.txt'), { method: 'HEAD' })
assert.deepEqual(
  [
    head.headers.get('content-length'),
    head.headers.get('content-type'),
    head.headers.get('x-amz-meta-color'),
  ],
  [`${notes.length}`, 'text/x-notes', 'blue'],
)
assert.equal((await client.fetch(at('big.bin'), { method: 'PUT', body: big })).status, 200)
same(Buffer.from(await (await client.fetch(at('big.bin'))).arrayBuffer()), big)
const list = await (await client.fetch(`${endpoint}/${bucket}?list-type=2&prefix=Gr%C3%B6`)).text()
assert.equal(/<Key>(.*)<\/Key>/.exec(list)?.[1]?.replaceAll('&amp;', '&'), 'Größe & so.txt')

const { url } = await client.sign(`${at('big.bin')}?X-Amz-Expires=60`, { aws: { signQuery: true } })
same(Buffer.from(await (await fetch(url)).arrayBuffer()), big)
const changed = await fetch(url.replace('X-Amz-Expires=60', 'X-Amz-Expires=61'))
assert.deepEqual([changed.status, await codeOf(changed)], [403, 'SignatureDoesNotMatch'])
const upload = await client.sign(`${at('signed.txt')}?X-Amz-Expires=60`, {
  method: 'PUT',
  aws: { signQuery: true },
})
assert.equal((await fetch(upload.url, { method: 'PUT', body: notes })).status, 200)
same(Buffer.from(await (await client.fetch(at('signed.txt'))).arrayBuffer()), notes)

for (const key of ['big.bin', 'signed.txt', 'nothing'])
  assert.equal((await client.fetch(at(key), { method: 'DELETE' })).status, 204)
const missing = await client.fetch(at('big.bin'))
assert.deepEqual(
  [missing.status, missing.headers.get('content-type'), await codeOf(missing)],
  [404, 'application/xml', 'NoSuchKey'],
)
const wrong = new AwsClient({ accessKeyId, secretAccessKey: 'wrong', service: 's3', region, retries: 0 })
const refused = await wrong.fetch(at('big.bin'))
assert.deepEqual([refused.status, await codeOf(refused)], [403, 'SignatureDoesNotMatch'])
