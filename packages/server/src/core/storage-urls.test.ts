import { S3Client } from '@aws-sdk/client-s3'
import { expect, test } from 'vitest'
import { createUrlSigner } from '../storage/blobs/s3/object-calls.ts'
import {
  parseS3Location,
  parseSendFile,
  type SendFile,
  splitDatabaseUrl,
  storeOriginOf,
  withoutPassword,
} from './storage-urls.ts'

test.each([
  's3://media/files?endpoint=http://127.0.0.1:9000',
  's3://media?endpoint=https://s3.example.org&path_style=false',
  's3://media.example.org?endpoint=https://s3.example.org&path_style=false',
  's3://media/files?region=eu-central-1',
  's3://media?region=us-east-1',
  's3://media.example.org?region=eu-central-1',
])('B12, G2 the origin of the URLs of %s is known before one is signed', async (text) => {
  const location = parseS3Location(text)
  if (!location) throw new Error('the location is valid')
  const { bucket, endpoint, region, pathStyle } = location
  const client = new S3Client({
    ...{ region, forcePathStyle: pathStyle, ...(endpoint !== null && { endpoint }) },
    credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
  })
  const url = await createUrlSigner(client, bucket)('key', null, 3_600_000)
  expect(new URL(url).origin).toBe(storeOriginOf(location))
})

const partsOf = (text: string) =>
  splitDatabaseUrl(text)?.map(({ username, password, host, pathname, search }) =>
    [username, password, host, pathname, search].join(' '),
  )

test('a URL with several servers is split into one URL for each', () => {
  expect(partsOf('postgres://u:a,b@h1:5432,[::1]:5433,h3/d?sslmode=require')).toEqual([
    'u a,b h1:5432 /d ?sslmode=require',
    'u a,b [::1]:5433 /d ?sslmode=require',
    'u a,b h3 /d ?sslmode=require',
  ])
  expect(partsOf('postgres://u:p@x@h/d')).toEqual(['u p%40x h /d '])
  expect(partsOf('postgres:///d?host=/run/postgresql')).toEqual(['   /d ?host=/run/postgresql'])
})

test.each(['', 'h1:5432/d', 'mysql://h/d', 'postgres:d', 'postgres://h:x/d', 'postgres://h1:1,h2:x/d'])(
  '"%s" is no URL of a database',
  (text) => {
    expect(splitDatabaseUrl(text)).toBeNull()
  },
)

test('the password is removed from both places, and nothing else', () => {
  expect(withoutPassword('postgres://u:secret@h1:1,h2:2/d?sslmode=require&password=secret')).toBe(
    'postgres://u@h1:1,h2:2/d?sslmode=require',
  )
  expect(withoutPassword('postgresql://h/d')).toBe('postgresql://h/d')
})

const cases: readonly (readonly [string, SendFile | null | undefined])[] = [
  ['off', null],
  ['redirect', { header: 'location' }],
  ['x-sendfile', { header: 'x-sendfile' }],
  ['x-accel-redirect:/files', { header: 'x-accel-redirect', prefix: '/files' }],
  ['x-accel-redirect:/a/b.c/', { header: 'x-accel-redirect', prefix: '/a/b.c' }],
  ['on', undefined],
  ['', undefined],
  ['x-accel-redirect', undefined],
  ['x-accel-redirect:/', undefined],
  ['x-accel-redirect:files', undefined],
  ['x-accel-redirect:/a b', undefined],
  ['x-accel-redirect:/a\r\nb', undefined],
]

test.each(cases)('%j is read as %j', (text, expected) => {
  expect(parseSendFile(text)).toEqual(expected)
})
