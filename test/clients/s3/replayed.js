// The requests of apps that cannot be installed here, as their sources send them: Laravel, WordPress, Nextcloud and django-storages.
// The first three use the AWS SDK for PHP. Mastodon uses that for Ruby, as Active Storage does.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { AwsClient } from 'aws4fetch'
import { accessKeyId, big, bucket, endpoint, md5, notes, region, same, secretAccessKey } from './files.js'

const client = new AwsClient({ accessKeyId, secretAccessKey, service: 's3', region, retries: 0 })
const isOld = process.env.OLD_GATEWAY === '1'

/** Sends a request as the SDK for PHP does, which adds a CRC32 to bodies since version 3.337. */
async function send(method, key, { query = '', headers = {}, body } = {}) {
  const url = `${endpoint}/${bucket}/${key.split('/').map(encodeURIComponent).join('/')}${query}`
  const checksum = Buffer.alloc(4)
  if (body !== undefined) checksum.writeUInt32BE(crc32(body))
  return await client.fetch(url, {
    method,
    body,
    headers: {
      'user-agent': 'aws-sdk-php/3.369.0 ua/2.1 OS/Linux#6.1.0 lang/php#8.3.14 GuzzleHttp/7 m/E',
      'aws-sdk-invocation-id': randomUUID(),
      'aws-sdk-retry': '0/0',
      ...(body !== undefined && {
        'x-amz-sdk-checksum-algorithm': 'CRC32',
        'x-amz-checksum-crc32': checksum.toString('base64'),
      }),
      ...headers,
    },
  })
}

/** The texts of all elements with a name. */
const elements = (xml, name) =>
  [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, text]) => text)
const bytesOf = async (response) => Buffer.from(await response.arrayBuffer())
const statusOf = async (sent) => {
  const response = await sent
  await response.arrayBuffer()
  return response.status
}

async function uploadParts(key, headers) {
  const created = await (await send('POST', key, { query: '?uploads', headers })).text()
  const [id = ''] = elements(created, 'UploadId')
  const size = 5 * 1024 * 1024
  const parts = []
  for (let at = 0; at < big.length; at += size) {
    const query = `?partNumber=${parts.length + 1}&uploadId=${encodeURIComponent(id)}`
    const part = await send('PUT', key, { query, body: big.subarray(at, at + size) })
    parts.push(
      `<Part><ETag>${part.headers.get('etag')}</ETag><PartNumber>${parts.length + 1}</PartNumber></Part>`,
    )
  }
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</CompleteMultipartUpload>\n`
  const completed = await send('POST', key, {
    query: `?uploadId=${encodeURIComponent(id)}`,
    body: Buffer.from(body),
    headers: { 'content-type': 'application/xml' },
  })
  assert.equal(completed.status, 200)
  assert.deepEqual(elements(await completed.text(), 'Key'), [key])
}

// Laravel: AwsS3V3Adapter of Flysystem, whose every upload has an ACL. A directory is an empty object.
const acl = (value) => ({ 'x-amz-acl': value })
assert.equal(
  await statusOf(send('PUT', 'laravel/photos/', { body: Buffer.alloc(0), headers: acl('private') })),
  200,
)
assert.equal(
  await statusOf(
    send('PUT', 'laravel/photos/Größe 1.txt', {
      body: notes,
      headers: { ...acl('private'), 'content-type': 'text/plain', 'cache-control': 'max-age=60' },
    }),
  ),
  200,
)
await uploadParts('laravel/big.bin', { ...acl('private'), 'content-type': 'application/octet-stream' })
const head = await send('HEAD', 'laravel/photos/Größe 1.txt')
assert.deepEqual(
  ['content-length', 'content-type', 'etag', 'cache-control'].map((name) => head.headers.get(name)),
  [`${notes.length}`, 'text/plain', `"${md5(notes)}"`, 'max-age=60'],
)
assert.ok(Date.parse(head.headers.get('last-modified') ?? ''))
same(await bytesOf(await send('GET', 'laravel/photos/Größe 1.txt')), notes)
const listed = await (
  await send('GET', '', { query: '?list-type=2&prefix=laravel%2F&delimiter=%2F&encoding-type=url' })
).text()
assert.deepEqual(
  [elements(listed, 'Key').map(decodeURIComponent), elements(listed, 'Prefix').map(decodeURIComponent)],
  [['laravel/big.bin'], ['laravel/', 'laravel/photos/']],
)
const deep = await (
  await send('GET', '', { query: '?list-type=2&prefix=laravel%2Fphotos%2F&encoding-type=url' })
).text()
assert.deepEqual(elements(deep, 'Key').map(decodeURIComponent), [
  'laravel/photos/',
  'laravel/photos/Größe 1.txt',
])
const everyone = 'http://acs.amazonaws.com/groups/global/AllUsers'
const grants = async (key) => elements(await (await send('GET', key, { query: '?acl' })).text(), 'URI')
assert.deepEqual(await grants('laravel/photos/Größe 1.txt'), [])
assert.equal(
  await statusOf(send('PUT', 'laravel/photos/Größe 1.txt', { query: '?acl', headers: acl('public-read') })),
  200,
)
assert.deepEqual(await grants('laravel/photos/Größe 1.txt'), [everyone])
const copyOf = (key) => ({
  'x-amz-copy-source': `/${bucket}/${key.split('/').map(encodeURIComponent).join('/')}`,
})
const source = copyOf('laravel/photos/Größe 1.txt')
assert.equal(
  await statusOf(
    send('PUT', 'laravel/copied.txt', {
      headers: { ...source, ...acl('private'), 'x-amz-metadata-directive': 'COPY' },
    }),
  ),
  200,
)
same(await bytesOf(await send('GET', 'laravel/copied.txt')), notes)
assert.equal(await statusOf(send('DELETE', 'laravel/copied.txt')), 204)
assert.equal(await statusOf(send('HEAD', 'laravel/copied.txt')), 404)
const matching = elements(
  await (await send('GET', '', { query: '?prefix=laravel%2F&encoding-type=url' })).text(),
  'Key',
)
const batch = Buffer.from(
  `<?xml version="1.0" encoding="UTF-8"?>\n<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${matching.map((key) => `<Object><Key>${decodeURIComponent(key)}</Key></Object>`).join('')}</Delete>\n`,
)
const removed = await send('POST', '', {
  query: '?delete',
  body: batch,
  headers: {
    'content-type': 'application/xml',
    ...(isOld && { 'content-md5': Buffer.from(md5(batch), 'hex').toString('base64') }),
  },
})
assert.equal(elements(await removed.text(), 'Key').length, 3)

// WordPress: the stream wrapper of S3 Uploads, whose files are public. It asks whether a path is a file or a directory.
const photo = 'uploads/2026/11/photo.png'
assert.equal(await statusOf(send('HEAD', photo)), 404)
const asked = await (
  await send('GET', '', {
    query: `?list-type=2&prefix=${encodeURIComponent(`${photo}/`)}&max-keys=1&encoding-type=url`,
  })
).text()
assert.deepEqual(elements(asked, 'Key'), [])
assert.equal(
  await statusOf(
    send('PUT', photo, {
      body: big.subarray(0, 2_000_000),
      headers: { ...acl('public-read'), 'content-type': 'image/png', 'cache-control': 'max-age=31536000' },
    }),
  ),
  200,
)
same(await bytesOf(await send('GET', photo)), big.subarray(0, 2_000_000))
assert.deepEqual(await grants(photo), [everyone])
assert.equal(
  await statusOf(
    send('PUT', 'uploads/2026/11/renamed.png', {
      headers: { ...copyOf(photo), ...acl('public-read'), 'x-amz-metadata-directive': 'COPY' },
    }),
  ),
  200,
)
assert.equal(await statusOf(send('DELETE', photo)), 204)
assert.equal(
  await statusOf(send('PUT', 'uploads/2026/11/renamed.png', { query: '?acl', headers: acl('private') })),
  200,
)
assert.deepEqual(await grants('uploads/2026/11/renamed.png'), [])

// Nextcloud: a bucket that it creates if it is missing, a storage class, and reads of ranges from any place.
assert.equal(await statusOf(send('HEAD', '')), 200)
const file = { 'x-amz-storage-class': 'STANDARD', 'content-type': 'application/octet-stream' }
assert.equal(
  await statusOf(send('PUT', 'urn:oid:1', { body: notes, headers: { ...file, ...acl('private') } })),
  200,
)
await uploadParts('urn:oid:2', file)
for (const [range, expected] of [
  ['0-', big],
  ['15999000-', big.subarray(15_999_000)],
]) {
  const read = await send('GET', 'urn:oid:2', { headers: { range: `bytes=${range}` } })
  assert.deepEqual(
    [read.status, read.headers.get('content-range')],
    [206, `bytes ${big.length - expected.length}-${big.length - 1}/${big.length}`],
  )
  same(await bytesOf(read), expected)
}
assert.equal(
  await statusOf(
    send('PUT', 'urn:oid:3', {
      headers: { ...copyOf('urn:oid:2'), ...acl('private'), 'x-amz-metadata-directive': 'COPY' },
    }),
  ),
  200,
)
same(await bytesOf(await send('GET', 'urn:oid:3')), big)
for (const key of ['urn:oid:1', 'urn:oid:2', 'urn:oid:3'])
  assert.equal(await statusOf(send('DELETE', key)), 204)

// django-storages: a name is free if HEAD does not find it; files of a directory by the first version of the list.
assert.equal(await statusOf(send('HEAD', 'media/notes.txt')), 404)
assert.equal(
  await statusOf(send('PUT', 'media/notes.txt', { body: notes, headers: { 'content-type': 'text/plain' } })),
  200,
)
const directory = await (
  await send('GET', '', { query: '?prefix=media%2F&delimiter=%2F&encoding-type=url' })
).text()
assert.deepEqual(
  [elements(directory, 'Key').map(decodeURIComponent), elements(directory, 'IsTruncated')],
  [['media/notes.txt'], ['false']],
)
assert.equal(await statusOf(send('DELETE', 'media/notes.txt')), 204)
