import { CreateBucketCommand } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { currentEngine } from '../harness/database.ts'
import {
  clientOf,
  makeServicePair,
  type Pair,
  type S3Server,
  sendSigned,
  startS3Server,
} from '../harness/s3-door.ts'

let started: S3Server
let pair: Pair
const Bucket = 'overwritten'

beforeAll(async () => {
  started = await startS3Server()
  pair = await makeServicePair(started.server)
  const client = clientOf(started.endpoint, pair)
  await client.send(new CreateBucketCommand({ Bucket }))
  client.destroy()
  await started.server.command('bucket', 'set', Bucket, '--public-keys', 'on')
})
afterAll(() => started[Symbol.asyncDispose]())

const urlOf = (key: string) => `${started.endpoint}/${Bucket}/${key}`

/** Stored with their rows, and as files. */
const sizes = [500, 90_000]

/** Every byte of a version is the same. */
const put = (key: string, turn: number) =>
  sendSigned(pair, urlOf(key), {
    method: 'PUT',
    headers: { 'x-amz-acl': 'public-read' },
    body: String.fromCharCode(97 + (turn % 26)).repeat(sizes[turn % 2] ?? 0),
  })

/** Requests of each reader. In a store, each copy takes several requests to it. */
const turns = currentEngine().endsWith('disk') ? 80 : 20

/** Replaces an object, again and again, while requests read it. Returns what their responses are, each once. */
async function whileReplaced(key: string, read: (turn: number) => Promise<string>): Promise<string[]> {
  expect((await put(key, 0)).status).toBe(200)
  const seen = new Set<string>()
  let isDone = false
  const writers = [1, 2, 3].map(async (writer) => {
    for (let turn = writer; !isDone; turn += 3) seen.add(`a put: ${(await put(key, turn)).status}`)
  })
  const readers = [1, 2, 3, 4].map(async (reader) => {
    for (let turn = 0; turn < turns; turn += 1) seen.add(await read(turn * 4 + reader))
  })
  try {
    await Promise.all(readers)
  } finally {
    isDone = true
    await Promise.all(writers)
  }
  return [...seen].sort()
}

const codeIn = (text: string): string => /<Code>(\w+)/.exec(text)?.[1] ?? text

/** Whether a response has a whole version. */
async function wholeness(response: Response): Promise<string> {
  const text = await response.text()
  if (response.status !== 200) return codeIn(text)
  return sizes.includes(text.length) && text === (text[0] ?? '').repeat(text.length) ? 'whole' : 'in part'
}

test('OK2, SP8 an object that is replaced while it is read is the old one or the new one', async () => {
  const read = async (turn: number) =>
    wholeness(await (turn % 2 === 0 ? sendSigned(pair, urlOf('read')) : fetch(urlOf('read'))))
  expect(await whileReplaced('read', read)).toEqual(['a put: 200', 'whole'])
})

test('OK2, MU10 an object that is replaced while it is copied is the old one or the new one', async () => {
  const created = await sendSigned(pair, `${urlOf('parts')}?uploads`, { method: 'POST' })
  const [, id = ''] = /<UploadId>(\w+)</.exec(await created.text()) ?? []
  const headers = { 'x-amz-copy-source': `/${Bucket}/source` }
  const edit = { ...headers, 'x-amz-metadata-directive': 'REPLACE', 'x-amz-acl': 'public-read' }
  const copy = async (turn: number) => {
    const target = `copy-${turn % 4}`
    if (turn % 12 >= 8) {
      const response = await sendSigned(pair, urlOf('source'), { method: 'PUT', headers: edit })
      const text = await response.text()
      // An edit needs the item that it found, which other requests may replace each time.
      return /<ETag>|<Code>SlowDown/.test(text) ? 'edited' : `an edit: ${codeIn(text)}`
    }
    if (turn % 8 < 4) {
      const part = `${urlOf('parts')}?partNumber=${(turn % 4) + 1}&uploadId=${id}`
      const response = await sendSigned(pair, part, { method: 'PUT', headers })
      const text = await response.text()
      return /<ETag>/.test(text) ? 'copied' : `a part: ${codeIn(text)}`
    }
    const response = await sendSigned(pair, urlOf(target), { method: 'PUT', headers })
    const text = await response.text()
    return /<ETag>/.test(text) ? wholeness(await sendSigned(pair, urlOf(target))) : `a copy: ${codeIn(text)}`
  }
  expect(await whileReplaced('source', copy)).toEqual(['a put: 200', 'copied', 'edited', 'whole'])
})
