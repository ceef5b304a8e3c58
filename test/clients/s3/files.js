import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** What the scenarios of libraries share: the settings, the bytes of the files, and refusals. */

const { ENDPOINT, BUCKET, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = process.env

export const endpoint = ENDPOINT ?? ''
export const bucket = BUCKET ?? ''
export const accessKeyId = AWS_ACCESS_KEY_ID ?? ''
export const secretAccessKey = AWS_SECRET_ACCESS_KEY ?? ''
export const region = 'us-east-1'

/** The options of the SDK's client. */
export const clientOptions = {
  endpoint,
  region,
  forcePathStyle: true,
  credentials: { accessKeyId, secretAccessKey },
}

export const notes = readFileSync('files/notes.txt')
export const big = readFileSync('files/big.bin')

export const md5 = (bytes) => createHash('md5').update(bytes).digest('hex')

/** Expects the same bytes, without printing them. */
export function same(found, expected) {
  assert.equal(found.length, expected.length)
  assert.ok(Buffer.compare(Buffer.from(found), Buffer.from(expected)) === 0, 'other bytes')
}

/** Expects that the promise rejects with an error whose name, code or message has the text. */
export async function refuses(text, promise) {
  const error = await promise.then(
    () => assert.fail(`no ${text}`),
    (reason) => reason,
  )
  const described = [
    error.name,
    error.code,
    error.Code,
    error.message,
    error.cause?.name,
    error.cause?.message,
  ]
  assert.ok(`${described}`.includes(text), `${text} is not in: ${described}`)
}

/** The metadata that a scenario has stored: the service adds the URL of the item, which only some scenarios look at. */
export const withoutUrl = ({ 'mediabucket-url': _, ...metadata }) => metadata
