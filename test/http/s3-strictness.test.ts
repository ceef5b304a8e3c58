import { createHash, createHmac, randomBytes } from 'node:crypto'
import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectAclCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectAclCommand,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { sharedBrowser } from '../harness/chromium.ts'
import { sendRaw } from '../harness/raw-http.ts'
import {
  clientOf,
  codeOf,
  errorCode,
  makePair,
  rawRequest,
  sendSigned,
  useS3Door,
} from '../harness/s3-door.ts'
import { scrape } from '../harness/scrape.ts'

// Requests that the service would answer with something else than what they ask for, if it ignored a part of them.

const door = useS3Door()
const { client, newBucket, put, textOf } = door
const partSize = 5 * 1024 * 1024

const url = (...path: readonly string[]) => [door.endpoint, ...path].join('/')

/** Stores an object of these parts. */
async function putParts(Bucket: string, Key: string, bodies: readonly Uint8Array[], more = {}) {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key, ...more }))
  const part = { Bucket, Key, UploadId }
  const Parts = await Promise.all(
    bodies.map(async (Body, index) => {
      const PartNumber = index + 1
      const { ETag } = await client.send(new UploadPartCommand({ ...part, PartNumber, Body }))
      return { PartNumber, ETag }
    }),
  )
  await client.send(new CompleteMultipartUploadCommand({ ...part, MultipartUpload: { Parts } }))
}

test('SP10 an ACL with the name of a member of JavaScript objects is none, and ends nothing', async () => {
  const Bucket = await newBucket('--public-keys', 'on')
  for (const acl of ['constructor', 'toString', '__proto__']) {
    const headers = { 'x-amz-acl': acl }
    const sent = await sendSigned(door.pair, url(Bucket, 'a'), { method: 'PUT', body: 'x', headers })
    expect(await errorCode(sent), acl).toBe('501 NotImplemented')
  }
  await put(Bucket, 'a', 'x')
})

test('SP8 a smaller picture has no parts', async () => {
  const Bucket = await newBucket('--public-keys', 'on')
  const raw = { width: 1_500, height: 1_300, channels: 3 } as const
  const picture = await sharp(randomBytes(1_500 * 1_300 * 3), { raw })
    .png({ compressionLevel: 0 })
    .toBuffer()
  const bodies = [picture.subarray(0, partSize), picture.subarray(partSize)]
  await putParts(Bucket, 'a.png', bodies, { ContentType: 'image/png', ACL: 'public-read' })
  const get = (query: string) => fetch(url(Bucket, `a.png?${query}`))
  const whole = Buffer.from(await (await get('variant=thumb')).arrayBuffer())
  const first = await get('variant=thumb&partNumber=1')
  expect(first.headers.get('content-range')).toBe(`bytes 0-${whole.byteLength - 1}/${whole.byteLength}`)
  expect(whole.equals(Buffer.from(await first.arrayBuffer()))).toBe(true)
  expect(await errorCode(await get('variant=thumb&partNumber=2'))).toBe('400 InvalidPart')
  const second = Buffer.from(await (await get('partNumber=2')).arrayBuffer())
  expect(bodies[1]?.equals(second)).toBe(true)
})

test('SP4, SP8 a signed URL whose parameters name a source copies it, and stores no empty object', async () => {
  const Bucket = await newBucket()
  await put(Bucket, 'source', 'text')
  await put(Bucket, 'copy', 'earlier')
  const copy = { Bucket, Key: 'copy', CopySource: `${Bucket}/source` }
  const signed = await getSignedUrl(client, new CopyObjectCommand(copy))
  expect(signed).toContain('x-amz-copy-source=')
  expect((await fetch(signed, { method: 'PUT' })).status).toBe(200)
  expect(await textOf(Bucket, 'copy')).toBe('text')
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'copy' }))
  const ofPart = await getSignedUrl(client, new UploadPartCopyCommand({ ...copy, UploadId, PartNumber: 1 }))
  expect(await (await fetch(ofPart, { method: 'PUT' })).text()).toContain('<CopyPartResult')
  // Only in a signed URL is a parameter a header.
  const inHeaders = await sendSigned(door.pair, url(Bucket, 'copy?x-amz-copy-source=a'), { method: 'PUT' })
  expect(await errorCode(inHeaders)).toBe('400 InvalidArgument')
  expect(await textOf(Bucket, 'copy')).toBe('text')
})

test('T9 a token with limits stores objects, and changes none', async () => {
  const Bucket = await newBucket('--public-keys', 'on')
  await put(Bucket, 'a', 'text', { Metadata: { by: 'owner' } })
  const limits = ['--bucket', Bucket, '--scope', 'media:read,media:write', '--max-items', '2'] as const
  const limited = clientOf(door.endpoint, await makePair(door.server, ...limits))
  const itself = { Bucket, Key: 'a', CopySource: `${Bucket}/a`, MetadataDirective: 'REPLACE' } as const
  await expect(
    limited.send(new PutObjectAclCommand({ Bucket, Key: 'a', ACL: 'public-read' })),
  ).rejects.toMatchObject({ name: 'AccessDenied' })
  await expect(
    limited.send(new CopyObjectCommand({ ...itself, Metadata: { by: 'another' } })),
  ).rejects.toMatchObject({ name: 'AccessDenied' })
  await limited.send(new CopyObjectCommand({ Bucket, Key: 'copy', CopySource: `${Bucket}/a` }))
  const { Grants } = await client.send(new GetObjectAclCommand({ Bucket, Key: 'a' }))
  expect(Grants).toHaveLength(1)
  const { Metadata } = await client.send(new HeadObjectCommand({ Bucket, Key: 'a' }))
  expect(Metadata).toMatchObject({ by: 'owner' })
  limited.destroy()
})

test('MU5, T10 a token lists the uploads that it can continue', async () => {
  const Bucket = await newBucket()
  const limits = ['--bucket', Bucket, '--scope', 'media:read,media:write', '--max-items', '2'] as const
  const limited = clientOf(door.endpoint, await makePair(door.server, ...limits))
  for (const [sender, Key] of [
    [client, 'own'],
    [limited, 'limited'],
  ] as const) {
    await sender.send(new CreateMultipartUploadCommand({ Bucket, Key }))
    const { Uploads = [] } = await sender.send(new ListMultipartUploadsCommand({ Bucket }))
    expect(Uploads.map(({ Key }) => Key)).toEqual([Key])
  }
  const { Uploads } = await client.send(new ListMultipartUploadsCommand({ Bucket }))
  expect(Uploads).toHaveLength(1)
  limited.destroy()
})

test('SP2, SP8 metadata may end with any character of UTF-8', async () => {
  const Bucket = await newBucket()
  // The last byte of these characters is the no-break space of Latin-1.
  for (const name of ['voilà', 'Р', 'plain']) {
    const time = `${new Date().toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`
    const scope = `${time.slice(0, 8)}/us-east-1/s3/aws4_request`
    const names = 'host;x-amz-content-sha256;x-amz-date;x-amz-meta-name'
    const canonical = `PUT\n/${Bucket}/a\n\nhost:${door.host}\nx-amz-content-sha256:UNSIGNED-PAYLOAD\nx-amz-date:${time}\nx-amz-meta-name:${name}\n\n${names}\nUNSIGNED-PAYLOAD`
    const text = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${createHash('sha256').update(canonical).digest('hex')}`
    const key = scope
      .split('/')
      .reduce<string | Buffer>(
        (secret, part) => createHmac('sha256', secret).update(part).digest(),
        `AWS4${door.pair.secretAccessKey}`,
      )
    const signature = createHmac('sha256', key).update(text).digest('hex')
    const authorization = `AWS4-HMAC-SHA256 Credential=${door.pair.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`
    const headers = {
      ...{ host: door.host, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD', 'x-amz-date': time, authorization },
      'x-amz-meta-name': Buffer.from(name).toString('latin1'),
    }
    const sent = await sendRaw(door.endpoint, rawRequest('PUT', `/${Bucket}/a`, headers, 'x'))
    expect(codeOf(sent), name).toBe('200 ')
    const head = await door.send(`/${Bucket}/a`, { method: 'HEAD' })
    expect(Buffer.from(head.headers.get('x-amz-meta-name') ?? '', 'latin1').toString(), name).toBe(name)
  }
})

test('SP8, B5, B6 a type that browsers read as another one is a download', async () => {
  const Bucket = await newBucket('--public-keys', 'on')
  const page = await (await (await sharedBrowser()).newContext()).newPage()
  for (const ContentType of [
    'application/pdf;, text/html',
    'text/plain;, text/html',
    'image/png;, text/html',
  ]) {
    await put(Bucket, 'a', '<script>document.title = "ran"</script>', { ContentType, ACL: 'public-read' })
    const { headers } = await fetch(url(Bucket, 'a'))
    expect(headers.get('content-disposition'), ContentType).toBe('attachment')
    expect(headers.get('content-security-policy'), ContentType).toContain('sandbox')
    await page.goto(url(Bucket, 'a')).catch(() => undefined)
    expect(await page.title(), ContentType).not.toBe('ran')
  }
  await page.context().close()
})

test('SP4, SP11 a parameter that would be ignored is refused, also without a signature', async () => {
  const Bucket = await newBucket('--public-keys', 'on')
  await put(Bucket, 'a', 'text', { ACL: 'public-read' })
  const get = (query: string) => fetch(url(Bucket, `a?${query}`))
  expect(await errorCode(await get('versionId=earlier'))).toBe('501 NotImplemented')
  expect((await get('versionId=null')).status).toBe(200)
  const closed = await newBucket()
  expect(await errorCode(await fetch(url(closed, 'a?versionId=earlier')))).toBe('403 AccessDenied')
})

test('SP4 conditions of a deletion that would be ignored delete nothing', async () => {
  const Bucket = await newBucket()
  await put(Bucket, 'a', 'text')
  for (const condition of ['<Size>99</Size>', '<LastModifiedTime>2001-01-01T00:00:00Z</LastModifiedTime>']) {
    const body = `<Delete><Object><Key>a</Key>${condition}</Object></Delete>`
    const sent = await sendSigned(door.pair, url(`${Bucket}?delete`), { method: 'POST', body })
    expect(await errorCode(sent), condition).toBe('501 NotImplemented')
  }
  expect(await textOf(Bucket, 'a')).toBe('text')
})

test('SP8 a put whose condition is several entity tags, or a weak one, changes nothing', async () => {
  const Bucket = await newBucket()
  const { ETag = '' } = await put(Bucket, 'a', 'text')
  for (const condition of [`"other", ${ETag}`, `W/${ETag}`, '*, *'])
    for (const name of ['if-match', 'if-none-match']) {
      const headers = { [name]: condition }
      const sent = await sendSigned(door.pair, url(Bucket, 'a'), { method: 'PUT', body: 'new', headers })
      expect(await errorCode(sent), `${name}: ${condition}`).toBe('501 NotImplemented')
    }
  expect(await textOf(Bucket, 'a')).toBe('text')
})

test('SP8 only a request that is signed in its headers gets the media URL, which stays valid', async () => {
  const Bucket = await newBucket('--public-keys', 'on')
  await put(Bucket, 'a', 'text', { ACL: 'public-read' })
  const urlIn = ({ headers }: Response) => headers.get('x-amz-meta-mediabucket-url')
  expect(urlIn(await fetch(url(Bucket, 'a'), { method: 'HEAD' }))).toBeNull()
  const signed = await getSignedUrl(client, new HeadObjectCommand({ Bucket, Key: 'a' }))
  const head = await fetch(signed, { method: 'HEAD' })
  expect([head.status, urlIn(head)]).toEqual([200, null])
  const media = urlIn(await sendSigned(door.pair, url(Bucket, 'a'), { method: 'HEAD' })) ?? ''
  await client.send(new PutObjectAclCommand({ Bucket, Key: 'a', ACL: 'private' }))
  expect((await fetch(url(Bucket, 'a'))).status).toBe(403)
  expect((await fetch(media)).status).toBe(200)
})

test('O2 objects count as stored and deleted items, in whatever way they are stored and deleted', async () => {
  const count = async () => {
    const { samples } = await scrape(door.server)
    return ['uploaded_items', 'uploaded_bytes', 'deleted_items'].map(
      (name) => samples.get(`mediabucket_${name}_total{}`) ?? 0,
    )
  }
  const Bucket = await newBucket()
  const [items = 0, bytes = 0, deleted = 0] = await count()
  const { ETag } = await put(Bucket, 'put', 'text')
  await putParts(Bucket, 'parts', [Buffer.from('parts')])
  await client.send(new CopyObjectCommand({ Bucket, Key: 'copy', CopySource: `${Bucket}/put` }))
  expect(await count()).toEqual([items + 3, bytes + 13, deleted])
  const remove = (...Objects: { Key: string; ETag?: string | undefined }[]) =>
    client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }))
  for (const Key of ['parts', 'none']) await client.send(new DeleteObjectCommand({ Bucket, Key }))
  await remove({ Key: 'copy' }, { Key: 'none' })
  await remove({ Key: 'put', ETag }, { Key: 'none', ETag })
  expect(await count()).toEqual([items + 3, bytes + 13, deleted + 3])
})
