import { expect, test } from 'vitest'
import { decodeChunks } from './chunked-body.ts'
import { signatureV2 } from './signature-v2.ts'
import {
  areEqualSecretly,
  ChunkSignatures,
  parseAmzDate,
  parseAuthorization,
  signatureOf,
  signingKeyOf,
  signWith,
  stringToSign,
} from './signature-v4.ts'

// The examples of https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html and of the pages after it.
const secret = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
const scope = '20130524/us-east-1/s3/aws4_request'
const time = '20130524T000000Z'
const host = ['Host', 'examplebucket.s3.amazonaws.com']
const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const key = signingKeyOf(secret, scope)

const sign = (
  method: string,
  target: string,
  rawHeaders: readonly string[],
  signed: string,
  payloadHash: string,
) => {
  const { pathname, searchParams: query } = new URL(target, 'http://host')
  const request = { method, path: pathname, query, rawHeaders, payloadHash }
  return signWith(key, stringToSign(request, { scope, signedHeaders: signed.split(';') }, time))
}

test('SP2 the example of a GET with a range', () => {
  const headers = [...host, 'Range', 'bytes=0-9', 'x-amz-content-sha256', empty, 'x-amz-date', time]
  expect(sign('GET', '/test.txt', headers, 'host;range;x-amz-content-sha256;x-amz-date', empty)).toBe(
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  )
})

test('SP2 the example of a PUT with an encoded key and the header Date', () => {
  const hash = '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072'
  const headers = [
    ...[...host, 'Date', 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-date', time],
    ...['x-amz-storage-class', 'REDUCED_REDUNDANCY', 'x-amz-content-sha256', hash],
  ]
  const signed = 'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class'
  const expected = '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd'
  expect(sign('PUT', '/test$file.text', headers, signed, hash)).toBe(expected)
  expect(sign('PUT', '/test%24file.text', headers, signed, hash)).toBe(expected)
})

test('SP2 the examples of parameters without a value, and in another order', () => {
  const headers = [...host, 'x-amz-content-sha256', empty, 'x-amz-date', time]
  const signed = 'host;x-amz-content-sha256;x-amz-date'
  expect(sign('GET', '/?lifecycle', headers, signed, empty)).toBe(
    'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  )
  expect(sign('GET', '/?prefix=J&max-keys=2', headers, signed, empty)).toBe(
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  )
})

test('SP2 the example of a signed URL', () => {
  const target =
    '/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=left-out'
  expect(sign('GET', target, host, 'host', 'UNSIGNED-PAYLOAD')).toBe(
    'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
  )
})

const seed = '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9'
const chunk = (size: number, signature: string) =>
  `${size.toString(16)};chunk-signature=${signature}\r\n${'a'.repeat(size)}\r\n`
const chunks = [
  chunk(65_536, 'ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648'),
  chunk(1_024, '0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497'),
  chunk(0, 'b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9'),
]

async function decode(
  pieces: readonly string[],
  options: Partial<Parameters<typeof decodeChunks>[1]> = {},
): Promise<{ readonly text: string; readonly trailer: unknown; readonly count: number }> {
  let trailer: unknown = null
  let count = 0
  let text = ''
  const decoded = decodeChunks(
    pieces.map((piece) => Buffer.from(piece)),
    {
      ...{ length: 66_560, signatures: null, trailer: null, ...options },
      onTrailer: (headers) => {
        trailer = Object.fromEntries(headers)
      },
    },
  )
  for await (const bytes of decoded) {
    text += Buffer.from(bytes).toString()
    count += 1
  }
  return { text, trailer, count }
}

test('SP3 chunks of one byte are joined, because each piece is written to the disk', async () => {
  const text = 'abcdefgh'.repeat(5_000)
  const body = `${[...text].map((byte) => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`
  const decoded = await decode(body.match(/[\s\S]{1,65536}/g) ?? [], { length: text.length })
  expect(decoded.text).toBe(text)
  expect(decoded.count).toBeLessThan(text.length / 5_000)
})

test('SP3 the example of signed chunks, however they arrive', async () => {
  const whole = chunks.join('')
  for (const length of [1, 7, 64, 70_000]) {
    const pieces = whole.match(new RegExp(`[^]{1,${length}}`, 'g')) ?? []
    const signatures = new ChunkSignatures(key, time, scope, seed)
    expect((await decode(pieces, { signatures })).text).toBe('a'.repeat(66_560))
  }
})

test('SP3 chunks in another order, changed, left out or added are refused', async () => {
  const [first = '', second = '', last = ''] = chunks
  const wrong = [
    [second, first, last],
    [first.replace('aaa', 'aab'), second, last],
    [first, last],
    [first, second, second, last],
    [first, second],
    [first, second, last, 'x'],
    [chunk(66_560, seed), last],
    [`${'a'.repeat(300)}\r\n`],
    ['10000\r\n'],
  ]
  for (const pieces of wrong) {
    const signatures = new ChunkSignatures(key, time, scope, seed)
    await expect(decode(pieces, { signatures })).rejects.toMatchObject({
      code: expect.stringMatching(/^(SignatureDoesNotMatch|IncompleteBody)$/),
    })
  }
})

test('SP3 a trailer of signed chunks has a valid signature as its last line', async () => {
  // The example of https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
  const line = 'x-amz-checksum-crc32c:sOO8/Q==\r\n'
  const last = '0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n'
  const signed =
    'x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n'
  const body = [
    chunk(65_536, 'b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2'),
    chunk(1_024, '1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7'),
    last,
  ].join('')
  const seed = '106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e'
  const read = (end: string) =>
    decode([body + end], {
      ...{ trailer: 'x-amz-checksum-crc32c', signatures: new ChunkSignatures(key, time, scope, seed) },
    })
  expect((await read(`${line}${signed}\r\n`)).trailer).toEqual({ 'x-amz-checksum-crc32c': 'sOO8/Q==' })
  for (const end of [
    `${line}\r\n`,
    `${signed}\r\n`,
    `${line}${signed}${line}\r\n`,
    `${line}${signed}${signed}\r\n`,
    `${line}${signed.replace(':d', ':e')}\r\n`,
    `${line.replace('sOO', 'sOP')}${signed}\r\n`,
    `${line}${signed}\r\nx`,
    '\r\n',
    '',
  ])
    await expect(read(end), JSON.stringify(end)).rejects.toMatchObject({
      code: expect.stringMatching(/^(SignatureDoesNotMatch|IncompleteBody)$/),
    })
})

test('SP3 unsigned chunks, with and without a trailer', async () => {
  const length = 5
  const body = '5\r\nhello\r\n0\r\n'
  const name = 'x-amz-checksum-crc32'
  for (const end of ['\r\n', ''])
    expect(await decode([body + end], { length })).toMatchObject({ text: 'hello', trailer: {} })
  for (const end of ['x-amz-checksum-crc32:NhCmhg==\r\n\r\n', 'X-Amz-Checksum-Crc32: NhCmhg==\r\n'])
    expect(await decode([body + end], { length, trailer: name })).toMatchObject({
      text: 'hello',
      trailer: { 'x-amz-checksum-crc32': 'NhCmhg==' },
    })
  // A trailer that was not announced, one that is repeated, and one that is too long.
  await expect(decode([`${body}a:b\r\n\r\n`], { length })).rejects.toMatchObject({ code: 'IncompleteBody' })
  for (const trailer of ['', 'b', 'a'])
    await expect(decode([`${body}a:b\r\na:c\r\n\r\n`], { length, trailer })).rejects.toThrow()
  await expect(decode([body, `a:${'b'.repeat(10_000)}\r\n`], { length, trailer: 'a' })).rejects.toThrow()
  await expect(decode([`${body}\r\nGET / HTTP/1.1\r\n\r\n`], { length })).rejects.toThrow()
  for (const wrong of ['-5', '5;a=b', '0x5', 'fffffffffffffff'])
    await expect(decode([`${wrong}\r\nhello\r\n0\r\n\r\n`], { length })).rejects.toThrow()
})

test('SP2 the example of Version 2 in a URL', () => {
  // https://docs.aws.amazon.com/AmazonS3/latest/API/RESTAuthentication.html#RESTAuthenticationQueryStringAuth
  const query = new URLSearchParams('Expires=1175139620')
  const target = { path: '/photos/puppy.jpg', bucket: 'johnsmith', key: 'photos/puppy.jpg', query }
  const signature = signatureV2(
    secret,
    { method: 'GET', rawHeaders: ['Host', 'johnsmith.s3.amazonaws.com'] },
    { ...target, isVirtual: true },
    '1175139620',
  )
  expect(signature).toBe('NpgCjnDzrM+WFzoENXmpNDUsSn8=')
})

test('SP2 a signature of Version 2 is that of the UTF-8 of a parameter, as boto3 signs it', () => {
  const query = new URLSearchParams({
    'response-content-disposition': 'attachment; filename="Müller €.txt"',
  })
  const target = { path: '/b/caf%C3%A9.txt', bucket: 'b', key: 'café.txt', query, isVirtual: false }
  const signature = signatureV2('secret', { method: 'GET', rawHeaders: [] }, target, '1000000100')
  expect(signature).toBe('b+gqpLGmBb9eoDFPTp0AN4Lamy4=')
})

test('SP2 malformed authorizations and dates', () => {
  const good = `AWS4-HMAC-SHA256 Credential=tok_000000000000/${scope},SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`
  expect(parseAuthorization(good)).toEqual({
    ...{ accessKeyId: 'tok_000000000000', scope, signature: '0'.repeat(64) },
    signedHeaders: ['host', 'x-amz-date'],
  })
  for (const wrong of [
    good.replace('AWS4-HMAC-SHA256', 'AWS4-HMAC-SHA1'),
    good.replace('/s3/', '/ec2/'),
    good.replace('aws4_request', 'aws4'),
    good.replace('Signature=0', 'Signature='),
    good.replace('SignedHeaders', 'Signed'),
    good.replace('tok_', 'tok/'),
  ])
    expect(parseAuthorization(wrong), wrong).toBeNull()
  expect(signatureOf(undefined, undefined, undefined)).toBeNull()
  expect(parseAmzDate('20130524T000000Z')).toBe(Date.UTC(2013, 4, 24))
  for (const wrong of ['', '20130524', '20131324T000000Z', '2013-05-24T00:00:00Z'])
    expect(parseAmzDate(wrong)).toBeNull()
  expect(areEqualSecretly('é', 'ab')).toBe(false)
})
