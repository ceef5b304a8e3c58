import sharp from 'sharp'
import { runHere } from '../harness/commands.ts'
import { parseResponse, type RawResponse } from '../harness/raw-http.ts'
import { makePair, type Pair, rawRequest, s3EndpointOf, sendSigned, signTarget } from '../harness/s3-door.ts'
import { headerValue, hostileText, mutate } from './hostile.ts'
import type { Random } from './random.ts'
import { exchange, expectForeseen, responseTimeout, type Target } from './target.ts'

/** The S3 protocol of a server, with the keys of the bucket of hostile input. */
interface Door {
  readonly endpoint: string
  readonly pair: Pair
}

const doors = new WeakMap<Target['instance'], Promise<Door>>()

async function openDoor({ server }: Target['instance']): Promise<Door> {
  const pair = await makePair(server, '--bucket', 'hostile')
  await runHere(server.data, 'bucket set', 'hostile', '--public-keys', 'on')
  return { endpoint: s3EndpointOf(server), pair }
}

/** A picture, so that the service renders variants of `a.png`. */
const png = sharp({ create: { width: 300, height: 200, channels: 3, background: '#8ac' } })
  .png()
  .toBuffer()

type Values = Readonly<Record<string, string>>

/** A request that the service accepts, in parts. */
interface Parts {
  readonly method: string
  readonly path: string
  readonly query: Values
  readonly headers: Values
  readonly body: string
}

const request = (method: string, path: string, more: Partial<Parts> = {}): Parts => ({
  ...{ method, path, query: {}, headers: {}, body: '' },
  ...more,
})

/** Each operation of objects and parts, and lists, on the objects `a` and `a.png` and on an upload in parts of `b/c`. */
function requestsOf(uploadId: string): readonly [Parts, ...Parts[]] {
  const part = { query: { partNumber: '1', uploadId } }
  return [
    request('GET', '/'),
    request('HEAD', '/hostile'),
    request('GET', '/hostile', { query: { location: '' } }),
    request('GET', '/hostile', { query: { acl: '' } }),
    request('GET', '/hostile', { query: { prefix: 'a', delimiter: '/', marker: 'a', 'max-keys': '2' } }),
    request('GET', '/hostile', {
      query: { 'list-type': '2', 'start-after': 'a', 'encoding-type': 'url', 'fetch-owner': 'true' },
    }),
    request('GET', '/hostile', { query: { uploads: '', 'key-marker': 'a', 'max-uploads': '1' } }),
    request('GET', '/hostile/a', { headers: { range: 'bytes=1-2', 'if-match': '*' } }),
    request('GET', '/hostile/a', { query: { 'response-content-type': 'text/html', partNumber: '1' } }),
    request('GET', '/hostile/a.png', { query: { variant: 'thumb' } }),
    request('HEAD', '/hostile/a', { headers: { 'x-amz-checksum-mode': 'ENABLED', 'if-none-match': '"x"' } }),
    request('GET', '/hostile/a', {
      query: { attributes: '' },
      headers: { 'x-amz-object-attributes': 'ETag,ObjectParts', 'x-amz-max-parts': '1' },
    }),
    request('GET', '/hostile/a', { query: { acl: '' } }),
    request('PUT', '/hostile/a', { query: { acl: '' }, headers: { 'x-amz-acl': 'private' } }),
    request('PUT', '/hostile/a', {
      headers: { 'x-amz-acl': 'private', 'x-amz-meta-a': 'b', 'x-amz-storage-class': 'STANDARD' },
      body: 'hello',
    }),
    request('PUT', '/hostile/a.png', {
      headers: {
        'content-type': 'image/png',
        'cache-control': 'no-store',
        'x-amz-checksum-crc32': 'NhCmhg==',
      },
      body: 'hello',
    }),
    request('PUT', '/hostile/a', {
      headers: {
        ...{
          'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
          'content-encoding': 'aws-chunked',
        },
        ...{ 'x-amz-trailer': 'x-amz-checksum-crc32', 'x-amz-decoded-content-length': '5' },
      },
      body: '5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n',
    }),
    request('PUT', '/hostile/a', {
      headers: {
        'x-amz-copy-source': 'hostile/a.png',
        'x-amz-metadata-directive': 'REPLACE',
        'x-amz-meta-a': 'b',
      },
    }),
    request('DELETE', '/hostile/a'),
    request('POST', '/hostile', {
      query: { delete: '' },
      body: '<Delete><Quiet>true</Quiet><Object><Key>a</Key></Object></Delete>',
    }),
    request('POST', '/hostile/b/c', {
      query: { uploads: '' },
      headers: { 'x-amz-checksum-algorithm': 'SHA256' },
    }),
    request('PUT', '/hostile/b/c', { ...part, body: 'hello' }),
    request('PUT', '/hostile/b/c', {
      ...part,
      headers: { 'x-amz-copy-source': 'hostile/a.png', 'x-amz-copy-source-range': 'bytes=0-1' },
    }),
    request('GET', '/hostile/b/c', { query: { uploadId, 'max-parts': '1', 'part-number-marker': '0' } }),
    request('POST', '/hostile/b/c', {
      query: { uploadId },
      body: '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"5d41402abc4b2a76b9719d911017c592"</ETag></Part></CompleteMultipartUpload>',
    }),
    request('DELETE', '/hostile/b/c', { query: { uploadId } }),
  ]
}

/** What programs add to requests, and what the service does not support. */
const otherHeaders = [
  ...['x-amz-tagging', 'x-amz-server-side-encryption', 'x-amz-grant-read', 'x-amz-copy-source-if-match'],
  ...['x-amz-checksum-sha256', 'x-amz-checksum-type', 'x-amz-sdk-checksum-algorithm', 'x-amz-mp-object-size'],
  ...['content-md5', 'content-disposition', 'content-language', 'expires', 'expect', 'origin'],
  ...[
    'x-amz-acl',
    'x-amz-copy-source',
    'if-none-match',
    'if-modified-since',
    'x-amz-content-sha256',
    'range',
  ],
] as const
const otherParameters = [
  ...[
    'versionId',
    'versions',
    'policy',
    'tagging',
    'partNumber',
    'uploadId',
    'variant',
    'x-id',
    'uploads',
    'acl',
  ],
  ...['continuation-token', 'response-expires', 'x-amz-copy-source', 'X-Amz-Signature', 'AWSAccessKeyId'],
] as const

/** The same request with one thing that no program would send. */
function changed(random: Random, parts: Parts): Parts {
  const { path, query, headers, body } = parts
  const [name, header] = [pickFrom(random, Object.keys(query)), pickFrom(random, Object.keys(headers))]
  return random.pick([
    { ...parts, query: { ...query, [name ?? random.pick(otherParameters)]: hostileText(random) } },
    { ...parts, query: { ...query, [random.pick(otherParameters)]: hostileText(random) } },
    { ...parts, query: { ...query, [hostileText(random)]: '' } },
    { ...parts, headers: { ...headers, [header ?? random.pick(otherHeaders)]: headerValue(random) } },
    { ...parts, headers: { ...headers, [random.pick(otherHeaders)]: headerValue(random) } },
    { ...parts, body: mutate(random, Buffer.from(body === '' ? 'hello' : body)).toString('latin1') },
    { ...parts, path: `${path}/${encodeURIComponent(hostileText(random))}` },
    { ...parts, method: random.pick(['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'PATCH']) },
  ])
}

const pickFrom = (random: Random, from: readonly string[]): string | undefined =>
  from[random.below(from.length)]

function targetOf({ path, query }: Parts): string {
  const pairs = Object.entries(query).map(([name, value]) =>
    value === '' ? encodeURIComponent(name) : `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  )
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`
}

/** Signed requests of the S3 protocol with values that it does not expect. An object that they do not name stays as it is. */
export async function fuzzObjects({ random, instance, statuses }: Target): Promise<void> {
  const opening = doors.get(instance) ?? openDoor(instance)
  doors.set(instance, opening)
  const { endpoint, pair } = await opening
  const host = new URL(endpoint).host
  const kept = `${endpoint}/hostile/kept-${random.below(2 ** 31)}`
  for (const [url, body] of [
    [kept, 'hello'],
    [`${endpoint}/hostile/a`, 'hello'],
    [`${endpoint}/hostile/a.png`, await png],
  ] as const)
    await expectStatus(200, await sendSigned(pair, url, { method: 'PUT', body }))
  const upload = `${endpoint}/hostile/b/c?upload`
  const begun = await (await sendSigned(pair, `${upload}s=`, { method: 'POST' })).text()
  const uploadId = /<UploadId>(\w+)</.exec(begun)?.[1] ?? 'none'
  for (let time = 0; time < 8; time += 1) {
    const good = random.pick(requestsOf(uploadId))
    const once = changed(random, good)
    const parts = random.oneIn(8) ? good : random.oneIn(4) ? changed(random, once) : once
    const { method } = parts
    const body = Buffer.from(parts.body, 'latin1')
    const { 'x-amz-content-sha256': payloadHash, ...headers } = parts.headers
    const signing = { method, headers, body, ...(payloadHash !== undefined && { payloadHash }) }
    const target = targetOf(parts)
    const bytes = rawRequest(method, target, signTarget(pair, host, target, signing).headers, body)
    const first = await exchange(endpoint, bytes, undefined, responseTimeout)
    const response = first?.status === 100 ? parseResponse(first.body) : first
    if (response === null) throw new Error(`no response\nfor ${bytes.toString('latin1')}`)
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
    checkObjectResponse(method, bytes.toString('latin1'), response)
  }
  const stored = await sendSigned(pair, kept)
  await expectStatus(200, stored)
  if ((await stored.text()) !== 'hello') throw new Error(`the object ${kept} has other bytes`)
  await expectStatus(204, await sendSigned(pair, kept, { method: 'DELETE' }))
  await sendSigned(pair, `${upload}Id=${uploadId}`, { method: 'DELETE' })
}

async function expectStatus(status: number, response: Response): Promise<void> {
  if (response.status !== status) throw new Error(`${response.status} ${await response.text()}`)
}

/** docs/interface.md SP3: errors are documents of S3. A response is complete. */
function checkObjectResponse(method: string, requestText: string, response: RawResponse): void {
  const { status, headers, body } = response
  const fail = (why: string) => {
    throw new Error(`${why}: ${status} ${body.slice(0, 500)}\nfor ${JSON.stringify(requestText)}`)
  }
  expectForeseen(response, fail)
  const length = headers.get('content-length')
  const hasBody = method !== 'HEAD' && status !== 204 && status !== 304
  if (hasBody && length !== undefined && Number(length) !== body.length) fail('an incomplete response')
  if (hasBody && length === undefined && !body.endsWith('0\r\n\r\n')) fail('an incomplete response')
  if (status < 400 || !hasBody) return
  if (headers.get('content-type') !== 'application/xml') fail('an error that is no XML')
  if (!/<Error><Code>\w+<\/Code>/.test(body)) fail('an error without a code')
}
