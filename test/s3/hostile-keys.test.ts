import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ListObjectsV2Command } from '@aws-sdk/client-s3'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sendRaw } from '../harness/raw-http.ts'
import { codeOf, rawRequest, signTarget, useS3Door } from '../harness/s3-door.ts'

const door = useS3Door()
const { client, newBucket } = door

const send = (target: string, method: string, body = '') => door.send(target, { method, body })

/** All keys of a bucket, as they are listed. */
async function keysOf(Bucket: string): Promise<string[]> {
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, EncodingType: 'url' }))
  return Contents.map(({ Key = '' }) => decodeURIComponent(Key))
}

/** Bytes, percent-encoded each. */
const encoded = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')

const inOrder = (keys: readonly string[]): string[] =>
  keys.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))

/** Stores a key by this encoding of it; it must be listed, read and deleted by it and by another encoding. */
async function expectRoundTrip(Bucket: string, sent: string, key: string) {
  const stored = await send(`/${Bucket}/${sent}`, 'PUT', key)
  expect(codeOf(stored), sent).toBe('200 ')
  for (const target of [`/${Bucket}/${sent}`, `/${Bucket}/${encoded(Buffer.from(key))}`]) {
    const { body, headers } = await send(target, 'GET')
    expect(Buffer.from(body, 'latin1').toString(), target).toBe(key)
    expect(headers.get('x-amz-request-id')).toBeDefined()
  }
}

test('OK1 a key of each byte is stored as it is, or refused as one that is no UTF-8', async () => {
  const Bucket = await newBucket()
  const stored: string[] = []
  for (let byte = 0; byte < 256; byte += 1) {
    const sent = `k${encoded(Uint8Array.of(byte))}`
    const key = `k${String.fromCharCode(byte)}`
    if (byte < 0x80) {
      await expectRoundTrip(Bucket, sent, key)
      stored.push(key)
    } else
      for (const method of ['PUT', 'GET', 'DELETE'])
        expect(codeOf(await send(`/${Bucket}/${sent}`, method, 'x')), sent).toBe('400 InvalidURI')
    // Encoded twice: the key has a percent sign.
    const twice = `k%25${byte.toString(16).padStart(2, '0')}`
    await expectRoundTrip(Bucket, twice, decodeURIComponent(twice))
    stored.push(decodeURIComponent(twice))
  }
  expect(await keysOf(Bucket)).toEqual(inOrder(stored))
})

test('OK1 a byte that is not encoded is one of the key, or the request is refused', async () => {
  const Bucket = await newBucket()
  const stored: string[] = []
  for (let byte = 0; byte < 256; byte += 1) {
    const character = String.fromCharCode(byte)
    if ('?#%'.includes(character)) continue
    const target = `/${Bucket}/r${character}`
    const { headers } = signTarget(door.pair, door.host, target, { method: 'PUT', body: 'x' })
    const response = await sendRaw(door.endpoint, rawRequest('PUT', target, headers, 'x'))
    const isPlain = byte > 0x20 && byte < 0x7f
    expect(codeOf(response), JSON.stringify(character)).toMatch(isPlain ? /^200 / : /^40[03] /)
    if (isPlain) stored.push(`r${character}`)
  }
  expect(await keysOf(Bucket)).toEqual(inOrder(stored))
})

test('OK1 dots, slashes and backslashes are characters of a key, which leads to no other bucket and no file', async () => {
  const [Bucket, other] = [await newBucket(), await newBucket()]
  const keys = [
    ...['.', '..', './a', '../a', 'a/../b', 'a/./b', 'a//b', '/', '//', '/a', 'a/', '../../../../etc/passwd'],
    ...[`../${other}/a`, '..\\..\\a', 'C:\\a', '\\\\host\\share', '~/a', '.identity', 'catalog.db', '-rf'],
    ...['a\u2028b', '\u202egpj.exe', 'e\u0301', '\u00e9', '\ufeff', '\u{1f600}', '__proto__', 'constructor'],
  ]
  for (const key of keys) await expectRoundTrip(Bucket, encoded(Buffer.from(key)), key)
  for (const plain of ['x/../y', 'x/%2e%2e/z', '%2e', '%2E%2E%2Fa2'])
    await expectRoundTrip(Bucket, plain, decodeURIComponent(plain))
  expect(await keysOf(other)).toEqual([])
  expect(await keysOf(Bucket)).toEqual(inOrder([...keys, 'x/../y', 'x/../z', '../a2']))
  for (const directory of [door.server.data, dirname(door.server.data)])
    for (const name of ['a', 'a2', 'etc', 'z', '-rf', '~'])
      expect(existsSync(join(directory, name)), `${directory}/${name}`).toBe(false)
})

test('OK1 a key has 1,024 bytes at most, whatever they are', async () => {
  const Bucket = await newBucket()
  for (const character of ['k', '/', 'é', '\u{1f600}', '\0']) {
    const size = Buffer.byteLength(character)
    const longest = character.repeat(1_024 / size)
    await expectRoundTrip(Bucket, encoded(Buffer.from(longest)), longest)
    const longer = encoded(Buffer.from(`${longest}k`))
    expect(codeOf(await send(`/${Bucket}/${longer}`, 'PUT', 'x'))).toBe('400 KeyTooLongError')
    expect(codeOf(await send(`/${Bucket}/${longer}`, 'GET'))).toBe('404 NoSuchKey')
    expect(codeOf(await send(`/${Bucket}/${longer}?uploads`, 'POST'))).toBe('400 KeyTooLongError')
  }
  expect(await keysOf(Bucket)).toHaveLength(5)
  const uploads = await send(`/${Bucket}?uploads`, 'GET')
  expect(uploads.body).not.toContain('<Upload>')
})

test('OK1 any bytes are a key if they are well-formed and short enough, and otherwise store nothing', async () => {
  const Bucket = await newBucket()
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const stored = new Set<string>()
  const some = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 12 }),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }).map((text) => Buffer.from(text)),
    fc
      .array(
        fc.constantFrom('%', '/', '.', '..', '%2f', '_items/', '\\', '+', ' ', '?', '#', '&', '"', '\r\n'),
        {
          minLength: 1,
          maxLength: 8,
        },
      )
      .map((texts) => Buffer.from(texts.join(''))),
  )
  await fc.assert(
    fc.asyncProperty(some, async (bytes) => {
      const sent = encoded(bytes)
      let key: string | null = null
      try {
        key = decoder.decode(bytes)
      } catch {}
      if (key === null || key.startsWith('_items/')) {
        const code = codeOf(await send(`/${Bucket}/${sent}`, 'PUT', 'x'))
        expect(code).toBe(key === null ? '400 InvalidURI' : '403 AccessDenied')
      } else {
        await expectRoundTrip(Bucket, sent, key)
        stored.add(key)
      }
    }),
    { numRuns: 150 },
  )
  expect(await keysOf(Bucket)).toEqual(inOrder([...stored]))
})

test('SP8 sources of copies and entries of Delete are keys of any bytes too, and lead nowhere else', async () => {
  const Bucket = await newBucket()
  const copy = (source: string, key = 'copy') =>
    door.send(`/${Bucket}/${key}`, {
      method: 'PUT',
      headers: { 'x-amz-copy-source': source },
    })
  const key = 'a b/../é+%\u0001'
  await expectRoundTrip(Bucket, encoded(Buffer.from(key)), key)
  const source = `${Bucket}/${encoded(Buffer.from(key))}`
  for (const one of [source, `/${source}`, encoded(Buffer.from(`/${Bucket}/${key}`))])
    expect(codeOf(await copy(one)), one).toBe('200 ')
  for (const [wrong, code] of [
    ['', '400 InvalidArgument'],
    ['/', '400 InvalidArgument'],
    [Bucket, '400 InvalidArgument'],
    [`/${Bucket}/`, '400 InvalidArgument'],
    [`/${Bucket}/%ff`, '400 InvalidURI'],
    [`/${Bucket}/%zz`, '400 InvalidURI'],
    [`//${Bucket}/a`, '400 InvalidArgument'],
    [`/${Bucket}/a/..`, '404 NoSuchKey'],
    [`/${Bucket}/../${Bucket}/a`, '404 NoSuchKey'],
    ['/../etc/passwd', '404 NoSuchBucket'],
    [`/${Bucket}/${'k'.repeat(2_000)}`, '404 NoSuchKey'],
    [`/${Bucket}/a?versionId=1`, '501 NotImplemented'],
    ['http://169.254.169.254/latest', '404 NoSuchBucket'],
  ] as const)
    expect(codeOf(await copy(wrong, 'wrong')), wrong).toBe(code)
  const body =
    '<Delete><Object><Key>a b/../é+%&#1;</Key></Object><Object><Key>../copy</Key></Object></Delete>'
  const deleted = await send(`/${Bucket}?delete`, 'POST', body)
  expect(deleted.body).toContain('<Key>a b/../')
  expect(await keysOf(Bucket)).toEqual(['copy'])
})
