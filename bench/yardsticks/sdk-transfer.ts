import { Readable } from 'node:stream'
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'

// The yardstick of large transfers to and from S3: the SDK alone. Prints the milliseconds of the second transfer of one process.
// Arguments: get or put; the URL of the store, a bucket, a key, and bytes. Credentials are in the environment.
const [direction = '', endpoint = '', bucket = '', key = '', bytes] = process.argv.slice(2)
const size = Number(bytes)
const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true })
const block = Buffer.alloc(1024 * 1024, '0123456789')

async function get(): Promise<void> {
  const { Body: body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: key }))
  if (!(body instanceof Readable)) throw new Error('no body')
  let read = 0
  for await (const chunk of body) read += chunk.length
  if (read !== size) throw new Error(`got ${read} bytes`)
}

async function put(): Promise<void> {
  const blocks = Array.from({ length: Math.ceil(size / block.length) }, (_, at) =>
    block.subarray(0, Math.min(block.length, size - at * block.length)),
  )
  const body = Readable.from(blocks, { objectMode: false })
  await new Upload({ client, params: { Bucket: bucket, Key: key, Body: body } }).done()
}

const transfer = direction === 'get' ? get : put
await transfer()
const startedAt = performance.now()
await transfer()
console.log(JSON.stringify({ milliseconds: performance.now() - startedAt }))
process.exit(0)
