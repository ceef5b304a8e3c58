import {
  CreateBucketCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { beforeAll, expect, test } from 'vitest'
import { signatureV2 } from '../../packages/server/src/s3/signature-v2.ts'
import { sendRaw } from '../harness/raw-http.ts'
import { codeOf, rawRequest, signedChunks, signTarget, useS3Door } from '../harness/s3-door.ts'

const door = useS3Door()
const { client } = door
let host: string
const Bucket = 'hostile'

beforeAll(async () => {
  host = door.host
  await client.send(new CreateBucketCommand({ Bucket }))
})

const put = { method: 'PUT', body: 'text' } as const
const raw = (headers: Readonly<Record<string, string>>, body: string | Uint8Array = put.body, key = 'a') =>
  sendRaw(door.endpoint, rawRequest('PUT', `/${Bucket}/${key}`, headers, body))

async function expectNothingStored() {
  expect((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount).toBe(0)
}

/** Another character, which is none of the neighbours of a list or of hexadecimal digits. */
const changed = (text: string, at: number): string =>
  `${text.slice(0, at)}${text[at] === 'x' ? 'y' : 'x'}${text.slice(at + 1)}`

test('SP2 each header that is signed, changed by one character in any place, is refused', async () => {
  const sent = {
    ...{ 'content-type': 'text/plain', 'content-md5': 'HLAPVi0VBJIH/6pwIVKCcA==' },
    ...{ 'x-amz-meta-one': '1', 'x-amz-acl': 'private', 'x-amz-storage-class': 'STANDARD' },
  }
  const { headers } = signTarget(door.pair, host, `/${Bucket}/a`, { ...put, headers: sent })
  const { authorization: _authorization, ...others } = headers
  for (const [name, value] of Object.entries(others))
    for (const at of [0, Math.floor(value.length / 2), value.length - 1]) {
      const code = codeOf(await raw({ ...headers, [name]: changed(value, at) }))
      expect(code, `${name} ${at}`).toMatch(/^40[03] /)
    }
  for (const name of Object.keys(others)) {
    const { [name]: _left, ...rest } = headers
    const code = codeOf(await raw(rest))
    expect(code, `without ${name}`).toMatch(/^40[03] /)
  }
  expect(codeOf(await raw({ ...headers, 'x-amz-tagging': 'a=b' }))).toBe('403 AccessDenied')
  expect(codeOf(await raw({ ...headers, 'x-amz-meta-two': '2' }))).toBe('403 AccessDenied')
  await expectNothingStored()
})

test('SP2 the Authorization header, changed by one character in any place, is refused', async () => {
  const { headers, authorization } = signTarget(door.pair, host, `/${Bucket}/a`, put)
  for (let at = 0; at < authorization.length; at += 1) {
    const code = codeOf(await raw({ ...headers, authorization: changed(authorization, at) }))
    expect(code, changed(authorization, at)).toMatch(/^40[03] /)
  }
  for (const wrong of [
    '',
    authorization.slice(0, -1),
    `${authorization}0`,
    authorization.replace(/Signature=(\w+)/, (_, hex: string) => `Signature=${hex.toUpperCase()}`),
    authorization.replace('/us-east-1/', '//'),
    authorization.replace('SignedHeaders=host;', 'SignedHeaders='),
    authorization.replace('SignedHeaders=host;', 'SignedHeaders=host;host;'),
    authorization.replace('SignedHeaders=host;', 'SignedHeaders=;host;'),
    authorization.replaceAll(', ', ' '),
    'AWS4-HMAC-SHA256',
    'AWS4-HMAC-SHA256 '.repeat(500),
    `AWS ${door.pair.accessKeyId}:aaaaaaaaaaaaaaaaaaaaaaaaaaa=`,
  ])
    expect(codeOf(await raw({ ...headers, authorization: wrong })), wrong).toMatch(/^40[03] /)
  await expectNothingStored()
})

test('SP2 a signed URL, changed by one character in any place of its query, is refused', async () => {
  const command = new PutObjectCommand({
    Bucket,
    Key: 'a',
    Metadata: { one: '1' },
    ContentType: 'text/plain',
  })
  const { pathname, search } = new URL(await getSignedUrl(client, command, { expiresIn: 3_600 }))
  const send = (target: string) => sendRaw(door.endpoint, rawRequest('PUT', target, { host }, put.body))
  for (let at = 1; at < search.length; at += 1) {
    const code = codeOf(await send(pathname + changed(search, at)))
    expect(code, changed(search, at)).toMatch(/^40[03] /)
  }
  for (const more of ['&x-amz-acl=public-read', '&x-amz-meta-two=2', '&X-Amz-Expires=5', '&acl', '&a'])
    expect(codeOf(await send(pathname + search + more)), more).toMatch(/^40[03] /)
  await expectNothingStored()
  expect((await send(pathname + search)).status).toBe(200)
  const get = new URL(await getSignedUrl(client, new GetObjectCommand({ Bucket, Key: 'a' })))
  for (const target of [`${get.pathname}b${get.search}`, `${get.pathname}%2F${get.search}`])
    expect(codeOf(await sendRaw(door.endpoint, rawRequest('GET', target, { host }))), target).toBe(
      '403 SignatureDoesNotMatch',
    )
  await door.send(`/${Bucket}/a`, { method: 'DELETE' })
})

test('SP2 a URL of Version 2, changed by one character in any place of its query, is refused', async () => {
  const rawHeaders = ['host', host]
  const path = `/${Bucket}/a`
  const expires = `${Math.floor(Date.now() / 1_000) + 600}`
  const sign = (query: string, method = 'PUT') => {
    const target = { path, bucket: Bucket, key: 'a', isVirtual: false }
    const signed = { ...target, query: new URLSearchParams(query) }
    const keys = new URLSearchParams({
      Signature: signatureV2(door.pair.secretAccessKey, { method, rawHeaders }, signed, expires),
      AWSAccessKeyId: door.pair.accessKeyId,
      Expires: expires,
    })
    return `?${query}${query === '' ? '' : '&'}${keys}`
  }
  const send = (search: string, headers = {}, method = 'PUT') =>
    sendRaw(door.endpoint, rawRequest(method, path + search, { host, ...headers }, put.body))
  const search = sign('')
  for (let at = 1; at < search.length; at += 1)
    expect(codeOf(await send(changed(search, at))), changed(search, at)).toMatch(/^40[03] /)
  for (const headers of [{ 'x-amz-acl': 'public-read' }, { 'x-amz-meta-a': 'b' }, { 'content-type': 'a/b' }])
    expect(codeOf(await send(search, headers)), JSON.stringify(headers)).toBe('403 SignatureDoesNotMatch')
  for (const more of ['&acl', '&uploadId=1&partNumber=1', '&tagging', '&versionId=1'])
    expect(codeOf(await send(search + more)), more).toBe('403 SignatureDoesNotMatch')
  for (const method of ['GET', 'DELETE', 'POST'])
    expect(codeOf(await send(search, {}, method)), method).toBe('403 SignatureDoesNotMatch')
  for (const time of ['0', '-1', '1e12', '99999999999999', `${Math.floor(Date.now() / 1_000) - 1}`, ''])
    expect(codeOf(await send(search.replace(/Expires=\d+/, `Expires=${time}`))), time).toMatch(/^403 /)
  await expectNothingStored()
  expect((await send(search)).status).toBe(200)
  await door.send(path, { method: 'DELETE' })
})

test('SP2 requests are refused before and after their time, and with times that are none', async () => {
  const minutes = 60_000
  for (const by of [-16, -60, -525_600, 16, 60, 525_600]) {
    const time = Date.now() + by * minutes
    expect(codeOf(await door.send(`/${Bucket}/a`, { ...put, time })), `${by}`).toBe(
      '403 RequestTimeTooSkewed',
    )
  }
  const { headers } = signTarget(door.pair, host, `/${Bucket}/a`, put)
  for (const date of [
    ...['', '0', '99999999T999999Z', '20261301T000000Z', '2026-11-29T00:00:00Z'],
    ...['Sun, 29 Nov 2026 00:00:00 GMT', '20261129T000000', ' ', '-20261129T000000Z'],
  ])
    expect(codeOf(await raw({ ...headers, 'x-amz-date': date })), date).toMatch(/^40[03] /)
  // The header Date is that of the request only if there is no X-Amz-Date, and it is signed with it.
  const { 'x-amz-date': _date, ...undated } = headers
  expect(codeOf(await raw({ ...undated, date: new Date().toUTCString() }))).toMatch(/^403 /)
  await expectNothingStored()
})

test('SP2 two signatures, two Authorization headers and two of any header of S3 are refused', async () => {
  const { headers, authorization } = signTarget(door.pair, host, `/${Bucket}/a`, put)
  const twice = async (line: string) => {
    const request = rawRequest('PUT', `/${Bucket}/a`, headers, put.body).toString('latin1')
    return codeOf(await sendRaw(door.endpoint, request.replace('\r\n', `\r\n${line}\r\n`)))
  }
  expect(await twice(`authorization: ${authorization}`)).toBe('400 InvalidArgument')
  for (const name of ['x-amz-date', 'x-amz-content-sha256', 'host'] as const)
    expect(await twice(`${name}: ${headers[name]}`), name).toMatch(/^40[03] /)
  const url = new URL(await getSignedUrl(client, new PutObjectCommand({ Bucket, Key: 'a' })))
  const target = url.pathname + url.search
  expect(codeOf(await sendRaw(door.endpoint, rawRequest('PUT', target, headers, put.body)))).toBe(
    '400 InvalidArgument',
  )
  await expectNothingStored()
})

test('SP2 line breaks and NUL in headers and in parameters add no header, and are refused', async () => {
  const { headers } = signTarget(door.pair, host, `/${Bucket}/a`, put)
  for (const control of ['\r\n', '\r', '\n', '\0', '\r\n\r\n', '\x0b', '\x7f']) {
    const value = `a${control}x-amz-acl: public-read`
    const signed = signTarget(door.pair, host, `/${Bucket}/a`, {
      ...put,
      headers: { 'x-amz-meta-one': value },
    })
    const code = codeOf(await raw(signed.headers))
    expect(code, JSON.stringify(control)).toMatch(/^40[03] /)
    expect(codeOf(await raw({ ...headers, [`x-amz-meta-a${control}b`]: 'c' }))).toMatch(/^40[03] /)
  }
  await expectNothingStored()
  await client.send(new PutObjectCommand({ Bucket, Key: 'stored', Body: 'x' }))
  const names = ['type', 'cache-control', 'content-disposition', 'content-encoding', 'expires']
  for (const name of names)
    for (const value of ['a%0d%0aset-cookie:%20b', 'a%0ab', 'a%0db', 'a%00b', 'a%7f', '%E4%B8%AD']) {
      const parameter = name === 'type' ? 'content-type' : name.replace(/^content-/, 'content-')
      const target = `/${Bucket}/stored?response-${parameter}=${value}`
      expect(codeOf(await door.send(target)), target).toBe('400 InvalidArgument')
    }
  await door.send(`/${Bucket}/stored`, { method: 'DELETE' })
})

test('SP8 metadata of a signed URL that no header could be are refused, and others come back', async () => {
  const sign = async (Metadata: Record<string, string>) => {
    const command = new PutObjectCommand({ Bucket, Key: 'url', Metadata })
    const { pathname, search } = new URL(await getSignedUrl(client, command))
    return sendRaw(door.endpoint, rawRequest('PUT', pathname + search, { host }, put.body))
  }
  for (const metadata of [
    { one: 'a\r\nset-cookie: b' },
    { one: 'a\nb' },
    { one: 'a\0b' },
    { 'one\r\nset-cookie': 'b' },
    { 'one two': 'b' },
    { öne: 'b' },
    { 'one:': 'b' },
  ])
    expect(codeOf(await sign(metadata)), JSON.stringify(metadata)).toBe('400 InvalidArgument')
  await expectNothingStored()
  expect((await sign({ one: 'é 中' })).status).toBe(200)
  const response = await door.send(`/${Bucket}/url`)
  expect(Buffer.from(response.headers.get('x-amz-meta-one') ?? '', 'latin1').toString()).toBe('é 中')
  await door.send(`/${Bucket}/url`, { method: 'DELETE' })
})

test('SP3 chunks that are not as they were announced store nothing', async () => {
  const pieces = ['a'.repeat(9_000), 'end']
  const send = async (
    change: (body: string) => string,
    {
      length = '9003',
      more = {},
      payloadHash = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
    }: { length?: string; more?: Record<string, string>; payloadHash?: string } = {},
  ) => {
    const headers = { 'x-amz-decoded-content-length': length, 'content-encoding': 'aws-chunked', ...more }
    const signed = signTarget(door.pair, host, `/${Bucket}/a`, { method: 'PUT', headers, payloadHash })
    return codeOf(await raw(signed.headers, change(signedChunks(signed, pieces))))
  }
  const size = (9_000).toString(16)
  const sizes = [
    ...['-1', '+2328', '0x2328', ' 2328', '2328 ', '', 'g', '2327', '2329', '0', '00002328 '],
    ...['ffffffffffff', 'fffffffffffff', '1'.repeat(300), '2328;a=b', '2328;', '9007199254740993'],
  ]
  for (const wrong of sizes)
    expect(await send((body) => body.replace(size, wrong)), wrong).toMatch(/^40[03] /)
  const changes: readonly ((body: string) => string)[] = [
    (body) => body.replace(/;chunk-signature=\w{64}/, ''),
    (body) =>
      body.replace(/chunk-signature=(\w)/, (_, one: string) => `chunk-signature=${one === '0' ? 1 : 0}`),
    (body) => body.replace(/;chunk-signature=\w{64}/, (one) => one + one),
    (body) => body.replace('chunk-signature', 'Chunk-Signature'),
    (body) => body.replace(/chunk-signature=\w{64}/, (one) => one.toUpperCase()),
    (body) => body.replace('\r\n', '\n'),
    (body) => body.replace('\r\n', '\r'),
    (body) => body.replace('aaaa\r\n', 'aaaa'),
    (body) => body.replace('aaaa\r\n', 'aaaa\r\n\r\n'),
    (body) => body.slice(0, -1),
    (body) => body.slice(0, body.lastIndexOf('0;chunk')),
    (body) => `${body}x`,
    (body) => `${body}\r\n`.repeat(2),
    (body) => `${body}0;chunk-signature=${'0'.repeat(64)}\r\n\r\n`,
    (body) => `${body}x-amz-checksum-crc32:AAAAAA==\r\n\r\n`,
    (body) => `${body}GET /${Bucket} HTTP/1.1\r\nhost: ${host}\r\n\r\n`,
    (body) => body.replaceAll('a', 'b'),
    () => '',
    () => '0\r\n\r\n',
  ]
  for (const change of changes) expect(await send(change), change.toString()).toMatch(/^40[03] /)
  for (const length of ['9002', '9004', '0', '', '-1', '1e3', '9003, 9003', '99999999999999999999'])
    expect(await send((body) => body, { length }), length).toMatch(/^4\d\d /)
  const trailer = { 'x-amz-trailer': 'x-amz-checksum-crc32' }
  const unsigned = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER'
  const plain = (end: string) => () => `${size}\r\n${pieces[0]}\r\n3\r\nend\r\n0\r\n${end}`
  const right = 'x-amz-checksum-crc32:z0wIzA==\r\n'
  for (const end of [
    ...[
      '',
      '\r\n',
      `${right}${right}\r\n`,
      `${right}x-amz-meta-a:b\r\n\r\n`,
      `x-amz-meta-a:b\r\n${right}\r\n`,
    ],
    ...[
      'x-amz-checksum-crc32:AAAAAA==\r\n\r\n',
      'x-amz-checksum-crc32:\r\n\r\n',
      'x-amz-checksum-crc32c:AAAAAA==\r\n\r\n',
    ],
    ...[`x-amz-checksum-crc32:${'A'.repeat(5_000)}\r\n\r\n`, ':\r\n\r\n', `${right}\r\nx`],
  ])
    expect(await send(plain(end), { more: trailer, payloadHash: unsigned }), end.slice(0, 99)).toMatch(
      /^400 /,
    )
  const signedTrailer = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER'
  for (const end of [right, `${right}\r\n`, `${right}x-amz-trailer-signature:${'0'.repeat(64)}\r\n\r\n`])
    expect(
      await send((body) => body.slice(0, -2) + end, { more: trailer, payloadHash: signedTrailer }),
      end,
    ).toMatch(/^40[03] /)
  expect(await send((body) => body, { more: { 'transfer-encoding': 'chunked' } })).toMatch(/^400 /)
  await expectNothingStored()
})
