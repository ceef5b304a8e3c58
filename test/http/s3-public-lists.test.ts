import {
  CreateBucketCommand,
  GetBucketAclCommand,
  GetBucketLocationCommand,
  HeadBucketCommand,
  PutBucketAclCommand,
  type PutBucketAclCommandInput,
} from '@aws-sdk/client-s3'
import { expect, test } from 'vitest'
import { clientOf, errorCode, makePair, useS3Door } from '../harness/s3-door.ts'
import { makeToken } from '../harness/token.ts'

const door = useS3Door({
  MEDIABUCKET_S3_BUCKET_OPTIONS: 'public-keys=on, trash-days=7',
  MEDIABUCKET_S3_REGION: 'eu-central-1',
})
const { client, newBucket, put } = door

const setAcl = (Bucket: string, ACL: PutBucketAclCommandInput['ACL'], sender = client) =>
  sender.send(new PutBucketAclCommand({ Bucket, ACL }))

/** Who may do what in the bucket. */
const grantsOf = async (Bucket: string) => {
  const { Grants = [] } = await client.send(new GetBucketAclCommand({ Bucket }))
  return Grants.map(({ Grantee, Permission }) => `${Grantee?.ID ?? Grantee?.URI} ${Permission}`)
}

const ownerOnly = ['mediabucket FULL_CONTROL']
const listed = [...ownerOnly, 'http://acs.amazonaws.com/groups/global/AllUsers READ']

/** The keys that everybody finds in the bucket, or the error. */
async function publicKeysOf(Bucket: string, query = ''): Promise<readonly string[] | string> {
  const response = await fetch(`${door.endpoint}/${Bucket}${query}`)
  if (!response.ok) return await errorCode(response)
  expect(response.headers.get('cache-control')).toBe('no-cache')
  return [...(await response.text()).matchAll(/<Key>(.*?)<\/Key>/g)].map(([, key = '']) => key)
}

const headOf = async (Bucket: string) =>
  (await fetch(`${door.endpoint}/${Bucket}`, { method: 'HEAD' })).status

test('SP10, SP12, OK8 everybody lists the keys of a bucket whose ACL is public-read, and no ids of items without a key', async () => {
  const Bucket = await newBucket()
  await put(Bucket, 'a', 'public', { ACL: 'public-read' })
  await put(Bucket, 'b/c', 'private')
  const { authorization } = await makeToken(door.server, '--bucket', Bucket)
  const uploaded = await fetch(`${door.server.url}/api/media`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'text/plain' },
    body: 'without a key',
  })
  expect(uploaded.status).toBe(201)

  expect(await grantsOf(Bucket)).toEqual(ownerOnly)
  expect([await publicKeysOf(Bucket), await headOf(Bucket)]).toEqual(['403 AccessDenied', 403])
  await setAcl(Bucket, 'public-read')
  expect(await grantsOf(Bucket)).toEqual(listed)
  expect([await publicKeysOf(Bucket), await headOf(Bucket)]).toEqual([['a', 'b/c'], 200])
  expect(await publicKeysOf(Bucket, '?list-type=2&prefix=b')).toEqual(['b/c'])
  expect(await publicKeysOf(Bucket, '?prefix=_items/')).toEqual([])
  const common = await (await fetch(`${door.endpoint}/${Bucket}?list-type=2&delimiter=/`)).text()
  expect([...common.matchAll(/<Prefix>(\w+\/)</g)].map(([, prefix]) => prefix)).toEqual(['b/'])
  for (const [path, code] of [
    ['/b/c', '403 AccessDenied'],
    ['?versions', '403 AccessDenied'],
    ['?uploads', '403 AccessDenied'],
    ['?acl', '403 AccessDenied'],
    ['?list-type=2&versionId=1', '501 NotImplemented'],
  ] as const)
    expect(await publicKeysOf(Bucket, path), path).toBe(code)
  expect(await (await fetch(`${door.endpoint}/${Bucket}/a`)).text()).toBe('public')

  await setAcl(Bucket, 'private')
  expect(await grantsOf(Bucket)).toEqual(ownerOnly)
  expect(await publicKeysOf(Bucket)).toBe('403 AccessDenied')
  expect((await fetch(`${door.endpoint}/${Bucket}/a`)).status).toBe(200)
})

test('SP10 only a token that manages buckets changes the ACL of one, and no other ACL is accepted', async () => {
  const Bucket = await newBucket()
  const own = clientOf(
    door.endpoint,
    await makePair(door.server, '--bucket', Bucket, '--scope', 'media:read,media:write,media:delete'),
  )
  await setAcl(Bucket, 'private', own)
  await expect(setAcl(Bucket, 'public-read', own)).rejects.toMatchObject({ name: 'AccessDenied' })
  for (const acl of ['public-read-write', 'authenticated-read'] as const)
    await expect(setAcl(Bucket, acl)).rejects.toMatchObject({ name: 'NotImplemented' })
  await door.server.command('bucket', 'set', Bucket, '--public-keys', 'off')
  await expect(setAcl(Bucket, 'public-read')).rejects.toMatchObject({ name: 'AccessControlListNotSupported' })
  expect(await grantsOf(Bucket)).toEqual(ownerOnly)
})

test('SP5 CreateBucket creates a bucket with the options of the service, and with a public list if its ACL says so', async () => {
  await client.send(new CreateBucketCommand({ Bucket: 'open-data', ACL: 'public-read' }))
  expect(await grantsOf('open-data')).toEqual(listed)
  expect(await publicKeysOf('open-data')).toEqual([])
  const { stdout } = await door.server.command('bucket', 'list', '--json')
  const settings = stdout
    .trim()
    .split('\n')
    .map((line) => Object(JSON.parse(line)))
    .find(({ name }) => name === 'open-data')
  expect(settings).toMatchObject({ public_keys: true, public_list: true, trash_days: 7 })
  await expect(
    client.send(new CreateBucketCommand({ Bucket: 'open-writes', ACL: 'public-read-write' })),
  ).rejects.toMatchObject({ name: 'NotImplemented' })
})

test('SP5 the region of a bucket is that of the service', async () => {
  const Bucket = await newBucket()
  expect(await client.send(new GetBucketLocationCommand({ Bucket }))).toMatchObject({
    LocationConstraint: 'eu-central-1',
  })
  expect(await client.send(new HeadBucketCommand({ Bucket }))).toMatchObject({ BucketRegion: 'eu-central-1' })
})
