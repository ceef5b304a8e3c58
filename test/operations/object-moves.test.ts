import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { s3Settings } from '../harness/ceph.ts'
import { runHere } from '../harness/commands.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { createDatabase } from '../harness/postgres.ts'
import {
  errorCode,
  makePair,
  type Pair,
  type S3Server,
  type Signing,
  sendSigned,
  startS3Server,
} from '../harness/s3-door.ts'
import { runCommand } from '../harness/server.ts'
import { outcome } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'

const keys = ['a', 'films/sea.mp4', 'films/large.bin', 'Größe/+ %20&.txt', 'public.txt']

const urlOf = ({ endpoint }: S3Server, key: string) =>
  `${endpoint}/default/${key.split('/').map(encodeURIComponent).join('/')}`

async function send(started: S3Server, pair: Pair, key: string, query: string, signing: Signing) {
  const response = await sendSigned(pair, `${urlOf(started, key)}${query}`, signing)
  const text = await response.text()
  if (response.status >= 300) throw new Error(`${key}: ${response.status} ${text}`)
  return { text, etag: response.headers.get('etag') ?? '' }
}

/** Objects with everything that an object can have, an item without a key, and an unfinished upload, whose id it returns. */
async function fill(started: S3Server, pair: Pair): Promise<string> {
  const put = (key: string, body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}) =>
    send(started, pair, key, '', { method: 'PUT', body, headers })
  await put('a', 'replaced')
  await put('a', 'text', { 'cache-control': 'max-age=7', 'x-amz-meta-colour': 'blue', expires: 'never' })
  await put('films/large.bin', randomBytes(300_000), { 'x-amz-checksum-algorithm': 'CRC32' })
  await put('Größe/+ %20&.txt', 'name', { 'content-type': 'text/plain', 'content-disposition': 'inline' })
  await put('public.txt', 'public', { 'x-amz-acl': 'public-read' })
  await put('deleted', 'deleted')
  await send(started, pair, 'deleted', '', { method: 'DELETE' })
  await upload(started.server, randomBytes(90_000), { name: 'unkeyed.bin' })
  const start = async (key: string) => {
    const headers = { 'x-amz-meta-kind': 'film', 'content-type': 'video/mp4' }
    const { text } = await send(started, pair, key, '?uploads=', { method: 'POST', headers })
    const id = /<UploadId>(\w+)</.exec(text)?.[1] ?? ''
    const parts = [5 * 1024 ** 2, 1_000].map(async (size, index) => {
      const query = `?uploadId=${id}&partNumber=${index + 1}`
      const { etag } = await send(started, pair, key, query, { method: 'PUT', body: randomBytes(size) })
      return `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag}</ETag></Part>`
    })
    return { id, list: (await Promise.all(parts)).join('') }
  }
  const { id, list } = await start('films/sea.mp4')
  const body = `<CompleteMultipartUpload>${list}</CompleteMultipartUpload>`
  await send(started, pair, 'films/sea.mp4', `?uploadId=${id}`, { method: 'POST', body })
  return (await start('films/unfinished.mp4')).id
}

/** What a client of the S3 protocol sees of the bucket: its list, and of each object its headers, its bytes, its parts and who may read it. */
async function seen(started: S3Server, pair: Pair) {
  const { endpoint } = started
  const textOf = async (path: string, signing?: Signing) =>
    (await sendSigned(pair, `${endpoint}/default${path}`, signing)).text()
  const list = await textOf('?list-type=2&encoding-type=url')
  const listed = [...list.matchAll(/<Key>([^<]*)</g)].map(([, key = '']) => decodeURIComponent(key))
  const objects = await Promise.all(
    listed.map(async (key) => {
      const headers = { 'x-amz-checksum-mode': 'ENABLED' }
      const head = await sendSigned(pair, urlOf(started, key), { method: 'HEAD', headers })
      const shown = [...head.headers].filter(
        ([name]) => !/^(date|connection|keep-alive|x-amz-request-id|traceparent)$/.test(name),
      )
      const url = new URL(head.headers.get('x-amz-meta-mediabucket-url') ?? '')
      const bytes = Buffer.from(await (await sendSigned(pair, urlOf(started, key))).arrayBuffer())
      return {
        ...{ key, status: head.status, url: url.pathname, bytes: bytes.toString('base64') },
        headers: shown.filter(([name]) => name !== 'x-amz-meta-mediabucket-url'),
        parts: await textOf(`${new URL(urlOf(started, key)).pathname.slice('/default'.length)}?attributes=`, {
          headers: { 'x-amz-object-attributes': 'ETag,ObjectParts,Checksum,ObjectSize' },
        }),
        anonymous: (await fetch(urlOf(started, key))).status,
      }
    }),
  )
  return { list, objects }
}

/** The unfinished upload is unknown, reserves nothing and has no bytes, and keys can be written. */
async function expectUsable(started: S3Server, pair: Pair, token: string, uploadId: string): Promise<void> {
  const { server, endpoint } = started
  expect(await (await sendSigned(pair, `${endpoint}/default?uploads=`)).text()).not.toContain('<Upload>')
  const part = `${urlOf(started, 'films/unfinished.mp4')}?uploadId=${uploadId}&partNumber=3`
  expect(await errorCode(await sendSigned(pair, part, { method: 'PUT', body: 'x' }))).toBe('404 NoSuchUpload')
  const headers = { authorization: `Bearer ${token}` }
  const bucket: unknown = await (await server.request('/api/bucket', { headers })).json()
  expect(bucket).toMatchObject({
    items: keys.length + 1,
    reserved_items: 0,
    reserved_bytes: 0,
    public_keys: true,
    public_list: true,
    url_uploads: false,
  })
  await send(started, pair, 'a', '', { method: 'PUT', body: 'after', headers: { 'if-match': '*' } })
  await send(started, pair, 'new', '', { method: 'PUT', body: 'new', headers: { 'if-none-match': '*' } })
}

test('OK9, MU6, F8, F11 after a backup and a restore, and after a migration to PostgreSQL and S3, clients of the S3 protocol see the same', async () => {
  await using directory = await temporaryDirectory()
  const at = (name: string) => join(directory.path, name)
  const { url, release } = await createDatabase()
  const store = await s3Settings()
  try {
    const started = await startS3Server({ MEDIABUCKET_AUDIT: 'changes' }, at('data'))
    const { token } = started.server
    const pair = await makePair(started.server, '--bucket', 'default')
    await runHere(
      at('data'),
      'bucket set',
      'default',
      '--public-keys',
      'on',
      '--public-list',
      'on',
      '--url-uploads',
      'off',
    )
    const uploadId = await fill(started, pair)
    const before = await seen(started, pair)
    expect(before.objects.map(({ key, anonymous }) => [key.slice(0, 6), anonymous])).toEqual([
      ...[
        ['Größe/', 403],
        ['_items', 403],
        ['a', 403],
        ['films/', 403],
        ['films/', 403],
      ],
      ['public', 200],
    ])
    await runCommand(['backup', at('backup')], { MEDIABUCKET_DATA: at('data') })
    expect(await started.server.stop()).toBe(0)

    await runCommand(['restore', at('backup')], { MEDIABUCKET_DATA: at('restored') })
    const checked = { code: 0, stdout: expect.stringContaining('No faults were found.') }
    expect(await outcome(['fsck', '--verify-bytes'], at('restored'))).toMatchObject(checked)
    await using restored = await startS3Server({}, at('restored'))
    expect(await seen(restored, pair)).toEqual(before)
    await expectUsable(restored, pair, token, uploadId)

    const { MEDIABUCKET_BLOBS_URL: bytes = '', ...credentials } = store
    await runCommand(['migrate', '--to', url, '--to', bytes], {
      ...credentials,
      MEDIABUCKET_DATA: at('data'),
    })
    const moved = { ...store, MEDIABUCKET_DATABASE_URL: url }
    expect(await outcome(['fsck', '--verify-bytes'], at('data'), moved)).toMatchObject(checked)
    await using migrated = await startS3Server(moved, at('data'))
    expect(await seen(migrated, pair)).toEqual(before)
    await expectUsable(migrated, pair, token, uploadId)
    expect(await migrated.server.stop()).toBe(0)
    expect(await outcome(['fsck', '--verify-bytes', '--grace', '1ms'], at('data'), moved)).toMatchObject(
      checked,
    )
  } finally {
    await release()
  }
})
