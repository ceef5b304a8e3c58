import { CreateBucketCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3'
import { beforeAll, expect, test } from 'vitest'
import { signatureV2 } from '../../packages/server/src/s3/signature-v2.ts'
import { openConnection } from '../harness/connection.ts'
import { sendRaw } from '../harness/raw-http.ts'
import {
  codeOf,
  makeServicePair,
  type Pair,
  rawRequest,
  type S3Server,
  sendTarget,
  signTarget,
  startS3Server,
  useS3Door,
} from '../harness/s3-door.ts'
import { until } from '../harness/until.ts'

const Bucket = 'hosted'
const name = 's3.example.org'
const door = useS3Door({ MEDIABUCKET_S3_HOST: name })
const { client } = door
const port = () => new URL(door.endpoint).port

beforeAll(async () => {
  await client.send(new CreateBucketCommand({ Bucket, ACL: 'public-read' }))
  await client.send(new CreateBucketCommand({ Bucket: 'other' }))
})

const send = (host: string, target: string, method = 'GET', body = '') =>
  door.send(target, { host, method, body })

test('SP5 the name in front of the host is the bucket, and the whole path the key', async () => {
  for (const [host, key] of [
    [`${Bucket}.${name}`, 'a'],
    [`${Bucket}.${name}:${port()}`, `${Bucket}/b`],
    [`${Bucket.toUpperCase()}.S3.EXAMPLE.ORG`, 'c//d'],
  ] as const)
    expect((await send(host, `/${key}`, 'PUT', key)).status, host).toBe(200)
  const { Contents } = await client.send(new ListObjectsV2Command({ Bucket }))
  expect(Contents?.map(({ Key }) => Key)).toEqual(['a', 'c//d', `${Bucket}/b`])
  expect((await send(`${Bucket}.${name}`, `/${Bucket}/b`)).body).toBe(`${Bucket}/b`)
  expect((await send(`${Bucket}.${name}`, '/?list-type=2&prefix=c')).body).toContain('<Key>c//d</Key>')
  expect((await send(`${Bucket}.${name}`, '/?location')).status).toBe(200)
  expect((await send(`new.${name}`, '/', 'PUT')).status).toBe(200)
  expect((await send(`new.${name}`, '/', 'DELETE')).status).toBe(204)
})

test('SP5 the host itself, another one and an address have the bucket in the path', async () => {
  for (const host of [name, `${name}:${port()}`, 'localhost', '127.0.0.1', `evil-${name}`, `x${name}`])
    expect((await send(host, `/${Bucket}/a`)).body, host).toBe('a')
  expect((await send(name, '/')).body).toContain(`<Name>${Bucket}</Name>`)
})

test('SP5 hosts of no bucket, of malformed names and of another bucket than the signed one are refused', async () => {
  expect(codeOf(await send(`none.${name}`, '/a'))).toBe('404 NoSuchBucket')
  for (const label of ['', 'a.b', '..', '-', '_', '%2e', 'a'.repeat(200), '[::1]'])
    expect(codeOf(await send(`${label}.${name}`, '/a')), label).toMatch(/^40[04] /)
  expect(codeOf(await send(`UPPER_CASE.${name}`, '/', 'PUT'))).toBe('400 InvalidBucketName')
  const target = '/a'
  const { headers } = signTarget(door.pair, `${Bucket}.${name}`, target)
  for (const host of [`other.${name}`, name, `${Bucket}.${name}.evil.example`])
    expect(codeOf(await sendRaw(door.endpoint, rawRequest('GET', target, { ...headers, host }))), host).toBe(
      '403 SignatureDoesNotMatch',
    )
  // The authority of a target in absolute form does not select a bucket that was not signed.
  const absolute = `http://other.${name}${target}`
  expect((await sendRaw(door.endpoint, rawRequest('GET', absolute, headers))).body).toBe('a')
})

test('SP2 a URL of Version 2 is signed with the bucket of its host', async () => {
  const expires = `${Math.floor(Date.now() / 1_000) + 60}`
  const host = `${Bucket}.${name}`
  const sign = (bucket: string) =>
    signatureV2(
      door.pair.secretAccessKey,
      { method: 'GET', rawHeaders: ['host', host] },
      { path: '/a', bucket, key: 'a', query: new URLSearchParams(), isVirtual: true },
      expires,
    )
  const get = (signature: string) => {
    const query = new URLSearchParams({
      AWSAccessKeyId: door.pair.accessKeyId,
      Expires: expires,
      Signature: signature,
    })
    return sendRaw(door.endpoint, rawRequest('GET', `/a?${query}`, { host }))
  }
  expect((await get(sign(Bucket))).body).toBe('a')
  expect(codeOf(await get(sign('other')))).toBe('403 SignatureDoesNotMatch')
  for (const at of [0, 10, 26]) {
    const signature = sign(Bucket)
    const changed = signature.slice(0, at) + (signature[at] === 'x' ? 'y' : 'x') + signature.slice(at + 1)
    expect(codeOf(await get(changed)), changed).toBe('403 SignatureDoesNotMatch')
  }
})

test('SP11, SP12 public objects are read, and the keys of a public list, at the host of their bucket', async () => {
  await client.send(new PutObjectCommand({ Bucket, Key: 'public', Body: 'p', ACL: 'public-read' }))
  const get = (host: string, target: string) => sendRaw(door.endpoint, rawRequest('GET', target, { host }))
  expect((await get(`${Bucket}.${name}`, '/public')).body).toBe('p')
  expect(codeOf(await get(`${Bucket}.${name}`, '/a'))).toBe('403 AccessDenied')
  expect((await get(`${Bucket}.${name}`, '/')).body).toContain('<Key>public</Key>')
  expect(codeOf(await get(`${Bucket}.${name}`, '/?acl'))).toBe('403 AccessDenied')
  expect(codeOf(await get(`none.${name}`, '/public'))).toBe('404 NoSuchBucket')
})

/** A connection with an upload in progress. It is refused while that of the request before it is not closed yet. */
async function openUpload({ server, endpoint }: S3Server, keys: Pair) {
  for (;;) {
    const connection = await openConnection(endpoint)
    let isClosed = false
    void connection.closed.then(() => {
      isClosed = true
    })
    const { headers } = signTarget(keys, new URL(endpoint).host, '/few/a', { method: 'PUT', body: '12' })
    connection.send(rawRequest('PUT', '/few/a', headers, '12').subarray(0, -1))
    const state = await until('a request in progress', async () => {
      // Its connection is beyond the limit too, and may be closed for the upload.
      const metrics = await fetch(`${server.url}/metrics`).then(
        (response) => response.text(),
        () => '',
      )
      return /^mediabucket_active_uploads 1$/m.test(metrics) ? 'active' : isClosed && 'closed'
    })
    if (state === 'active') return connection
    connection[Symbol.dispose]()
  }
}

test('SP7 a connection beyond the limits gets the error of S3', async () => {
  const few = await startS3Server({ MEDIABUCKET_MAX_CONNECTIONS: '1' })
  try {
    const keys = await makeServicePair(few.server)
    // Refused while a connection of the start is not closed.
    await until('the bucket', async () => {
      const created = await sendTarget(keys, few.endpoint, '/few', { method: 'PUT' }).catch(() => null)
      return created?.status === 200
    })
    // It has a request in progress, so that it is not closed for others.
    using _busy = await openUpload(few, keys)
    const request = rawRequest('GET', '/', { host: 'a' })
    const refused = await sendRaw(few.endpoint, request)
    expect(codeOf(refused)).toBe('503 SlowDown')
    // One that sends nothing is refused after some seconds.
    using silent = await openConnection(few.endpoint)
    await silent.closed
    expect(silent.received()).toMatch(
      /^HTTP\/1\.1 503 .*content-type: application\/xml\r\n.*<Code>SlowDown</s,
    )
  } finally {
    await few.server[Symbol.asyncDispose]()
  }
})
