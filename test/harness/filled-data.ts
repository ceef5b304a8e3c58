import { createHash, randomBytes } from 'node:crypto'
import { newChecksum } from '../../packages/server/src/core/checksums.ts'
import { runHere } from './commands.ts'
import { catalogRows } from './rows.ts'
import { makePair, type Signing, s3EndpointOf, sendSigned } from './s3-door.ts'
import type { TestServer } from './server.ts'
import { makeToken } from './token.ts'
import { metadataOf, tusOf } from './tus.ts'
import { upload } from './upload.ts'
import { readCreatedToken, readCreatedWebhook } from './wire.ts'

// Data with rows in every table, and requests that read and change all of them.

/** Small files are in the catalog, and larger ones in the blob store. */
export const filledSettings = {
  MEDIABUCKET_INLINE_SIZE: '100',
  MEDIABUCKET_AUDIT: 'all',
  MEDIABUCKET_ADDRESS_RATE: 'off',
  MEDIABUCKET_TOKEN_RATE: 'off',
  MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1',
  MEDIABUCKET_S3_PORT: '0',
}

const scopes = ['media:read', 'media:write', 'media:delete', 'tokens:manage', 'webhooks:manage'].flatMap(
  (scope) => ['--scope', scope],
)

const json = (method: string, body: unknown, more: Readonly<Record<string, string>> = {}): RequestInit => ({
  method,
  headers: { 'content-type': 'application/json', ...more },
  body: JSON.stringify(body),
})

/** Data with rows in every table. Returns the ids of the items, of the resumable uploads and of the webhook. */
export async function fill(server: TestServer) {
  const { authorization } = await makeToken(server, '--bucket', 'default', ...scopes)
  const call = async (path: string, init: RequestInit) => {
    const response = await server.request(path, { ...init, headers: { authorization, ...init.headers } })
    if (response.status >= 300) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response
  }
  await runHere(server.data, 'bucket set', 'default', '--trash-days', '3', '--max-items', '1000')
  const ids: string[] = []
  for (const name of ['a.txt', 'folder/b.txt', 'c.txt', 'd.txt', 'e.txt']) {
    const bytes = name < 'd' ? randomBytes(200).toString('hex') : name
    ids.push((await upload(server, bytes, { name, authorization })).id)
  }
  await call('/api/media', {
    ...json('POST', 'k'),
    headers: {
      'idempotency-key': 'key',
      'mediabucket-labels': 'album="1"',
      'mediabucket-expires-at': '2100-01-01T00:00:00Z',
    },
  })
  const service = await makeToken(server, '--service', '--scope', 'buckets:manage,media:write')
  await call('/api/media', {
    ...json('POST', 's'),
    headers: {
      authorization: service.authorization,
      'mediabucket-bucket': 'default',
      'idempotency-key': 'of-a-service',
    },
  })
  await call(`/api/media/${ids[0]}`, json('PATCH', { alt_text: 'alt', caption: 'c', labels: { album: '2' } }))
  await call(`/api/media/${ids[3]}`, { method: 'DELETE' })
  const hook = readCreatedWebhook(
    await (await call('/api/webhooks', json('POST', { url: 'http://127.0.0.1:9/' }))).json(),
  )
  await call(`/api/webhooks/${hook.id}/test`, { method: 'POST' })
  const limited = readCreatedToken(
    await (
      await call(
        '/api/tokens',
        json('POST', { scopes: ['media:write'], note: 'n', limits: { max_items: 9, types: ['text/*'] } }),
      )
    ).json(),
  )
  await call(`/api/tokens/${limited.id}/rotate`, json('POST', { expires_at: null }))
  const tus = tusOf(server, `Bearer ${limited.token}`)
  const metadata = { 'upload-metadata': metadataOf({ filename: 'u.txt', filetype: 'text/plain' }) }
  const [unfinished, finished] = [
    await tus.createWithLength(400, metadata),
    await tus.createWithLength(4, metadata),
  ]
  await tus.sendChunk(unfinished, 0, 'ab'.repeat(100))
  if ((await tus.sendChunk(finished, 0, 'abcd')).status !== 204) throw new Error('the upload is not finished')
  await runHere(server.data, 'bucket set', 'default', '--private', 'on')
  await runHere(server.data, 'bucket set', 'default', '--private', 'off')
  const rows = await catalogRows(server.data)
  const uploadId = unfinished.split('/').at(-1)
  const [bytes, later] =
    rows.engine === 'sqlite' ? ["X'61'", '9000000000000'] : ["'a'::bytea", "'2100-01-01'"]
  await rows.change(`INSERT INTO upload_parts (upload_id, number, size, etag) VALUES ('${uploadId}', 1, 5, 'e');
    INSERT INTO upload_pieces (upload_id, number, bytes) VALUES ('${uploadId}', 1, ${bytes});
    INSERT INTO retired (id) VALUES ('${'1'.repeat(26)}');
    INSERT INTO intents (id, expires_at) VALUES ('${'2'.repeat(26)}', ${later});
    INSERT INTO damaged (id) VALUES ('${ids[1]}')`)
  return { ids, uploads: [unfinished, finished], hook: hook.id, objects: await fillObjects(server) }
}

const objectScopes = ['--bucket', 'default', '--scope', 'media:read,media:write,media:delete']

/** Objects, of which one was uploaded in parts, and an unfinished upload. */
async function fillObjects(server: TestServer) {
  const pair = await makePair(server, ...objectScopes)
  const send = async (path: string, signing: Signing) => {
    const response = await sendSigned(pair, `${s3EndpointOf(server)}/default/${path}`, signing)
    const text = await response.text()
    if (response.status >= 300) throw new Error(`${path}: ${response.status} ${text}`)
    return text
  }
  const headers = { 'x-amz-meta-a': 'b', 'content-type': 'text/plain', 'cache-control': 'no-cache' }
  await send('films/a.txt', { method: 'PUT', body: 'small', headers })
  await send('films/b.bin', { method: 'PUT', body: randomBytes(300) })
  const checksum = { 'x-amz-checksum-algorithm': 'CRC32' }
  const start = async (path: string) => {
    const created = await send(`${path}?uploads=`, { method: 'POST', headers: { ...headers, ...checksum } })
    const id = /<UploadId>(\w+)</.exec(created)?.[1] ?? ''
    const body = `a part of ${path}`
    const crc = newChecksum('CRC32')
    crc.update(Buffer.from(body))
    const value = crc.digest().toString('base64')
    const part = `${path}?uploadId=${id}&partNumber=3`
    await send(part, { method: 'PUT', body, headers: { 'x-amz-checksum-crc32': value } })
    return { id, etag: createHash('md5').update(body).digest('hex') }
  }
  const completed = await start('films/c.mp4')
  await send(`films/c.mp4?uploadId=${completed.id}`, {
    method: 'POST',
    body: completionOf(completed.etag),
  })
  return { unfinished: await start('films/d.mp4'), completed }
}

const completionOf = (etag: string): string =>
  `<CompleteMultipartUpload><Part><PartNumber>3</PartNumber><ETag>${etag}</ETag></Part></CompleteMultipartUpload>`

/** Requests of the S3 protocol of every kind. Returns those that failed because of the service. */
async function tourObjects(
  server: TestServer,
  { unfinished, completed }: Filled['objects'],
): Promise<string[]> {
  const pair = await makePair(server, ...objectScopes)
  const failed: string[] = []
  const call = async (path: string, signing: Signing = {}) => {
    const { method = 'GET' } = signing
    const response = await sendSigned(pair, `${s3EndpointOf(server)}/default${path}`, signing)
    const text = await response.text()
    if (response.status >= 500 && !/bytes (?:of|are)/.test(text))
      failed.push(`${method} ${path}: ${response.status} ${text}`)
    return text
  }
  for (const query of [
    '',
    '?list-type=2&max-keys=2',
    '?list-type=2&delimiter=/',
    '?prefix=_items/',
    '?uploads=',
  ])
    await call(query)
  for (const key of ['a.txt', 'b.bin', 'c.mp4']) {
    for (const method of ['GET', 'HEAD']) await call(`/films/${key}`, { method })
    await call(`/films/${key}?attributes=`, {
      headers: { 'x-amz-object-attributes': 'ETag,ObjectParts,Checksum' },
    })
    await call(`/films/${key}?acl=`)
    const headers = { 'x-amz-copy-source': `/default/films/${key}` }
    await call(`/copies/${key}`, { method: 'PUT', headers })
  }
  for (const [key, { id, etag }] of [
    ['c.mp4', completed],
    ['d.mp4', unfinished],
  ] as const) {
    await call(`/films/${key}?uploadId=${id}`)
    await call(`/films/${key}?uploadId=${id}&partNumber=1`, { method: 'PUT', body: 'x' })
    await call(`/films/${key}?uploadId=${id}`, { method: 'POST', body: completionOf(etag) })
    await call(`/films/${key}?uploadId=${id}`, { method: 'DELETE' })
  }
  await call('/films/a.txt', { method: 'PUT', body: 'new' })
  for (const key of ['a.txt', 'b.bin', 'c.mp4', 'd.mp4']) await call(`/films/${key}`, { method: 'DELETE' })
  return failed
}

export type Filled = Awaited<ReturnType<typeof fill>>

/** Requests of every kind, with a new token. Returns those that failed because of the service. */
export async function tour(server: TestServer, { ids, uploads, hook, objects }: Filled): Promise<string[]> {
  const { authorization } = await makeToken(server, '--bucket', 'default', ...scopes)
  const failed: string[] = []
  const call = async (path: string, init: RequestInit = {}) => {
    const response = await server.request(path, { ...init, headers: { ...init.headers, authorization } })
    const body = await response.text()
    // Bytes that an item names wrongly are reported when they are read (B9, F3). A lower quota is one that an operator may have set.
    if (response.status >= 500 && !/"code":"(?:bytes-missing|quota-exceeded)"/.test(body))
      failed.push(`${init.method ?? 'GET'} ${path}: ${response.status} ${/"code":"[^"]*"/.exec(body)?.[0]}`)
    return body
  }
  for (const page of [1, 2]) await call(`/api/media?page=${page}`)
  for (const query of [
    ...[
      '',
      'order=newest',
      'order=taken',
      'start_name=a&order=name',
      'name=a',
      'kind=document',
      'label.album=1',
      'path=folder',
      'order=name',
      'order=name-desc&limit=1',
      'page=1',
    ],
    'sha256=0000000000000000000000000000000000000000000000000000000000000000',
  ])
    await call(`/api/items?${query}`)
  for (const path of [
    '/api/labels',
    '/api/labels?key=album',
    '/api/changes',
    '/api/bucket',
    '/api/trash',
    '/api/token',
  ])
    await call(path)
  for (const id of ids) {
    await call(`/api/media/${id}`)
    await call(`/media/${id}`)
    await call(`/api/media/${id}`, json('PATCH', { caption: 'new', labels: { new: '1' } }))
    await call(`/api/media/${id}/links`, json('POST', {}))
  }
  const { data: tokens } = JSON.parse(await call('/api/tokens?limit=500')) ?? {}
  for (const { id } of tokens ?? []) {
    await call(`/api/tokens/${encodeURIComponent(id)}/rotate`, json('POST', { expires_at: null }))
  }
  await call('/api/webhooks')
  await call(`/api/webhooks/${hook}`)
  await call(`/api/webhooks/${hook}/deliveries`)
  await call(`/api/webhooks/${hook}`, json('PATCH', { batch: 3 }))
  await call(`/api/webhooks/${hook}/test`, { method: 'POST' })
  await call('/api/webhooks', json('POST', { url: 'http://127.0.0.1:9/x' }))
  for (const path of uploads) {
    const headers = { 'tus-resumable': '1.0.0', 'upload-offset': '200' }
    await call(path, { method: 'HEAD', headers })
    await call(path, {
      method: 'PATCH',
      headers: { ...headers, 'content-type': 'application/offset+octet-stream' },
      body: 'x'.repeat(200),
    })
    await call(path, { method: 'DELETE', headers })
  }
  await call('/api/media', { method: 'POST', body: 'new' })
  await call('/api/media', {
    ...json('POST', 'k'),
    headers: { 'idempotency-key': 'key', 'mediabucket-labels': 'album="1"' },
  })
  await call('/api/media', { method: 'POST', body: randomBytes(500) })
  await call('/api/trash/restore', json('POST', { ids: [ids[3]] }))
  failed.push(...(await tourObjects(server, objects)))
  for (const id of ids) await call(`/api/media/${id}`, { method: 'DELETE' })
  await call('/api/trash', json('DELETE', { ids: ids.slice(0, 2) }))
  await call('/api/changes')
  await call(`/api/webhooks/${hook}`, { method: 'DELETE' })
  await call('/metrics')
  return failed
}
