import type { IncomingMessage } from 'node:http'
import { Fault, type FaultCode, type ParameterFault } from '../../core/fault.ts'
import type { BodyReader } from './body-reader.ts'

/** The problems of a request whose body is not such an object. */
export const jsonBodyProblems: readonly FaultCode[] = [
  'json-malformed',
  'upload-incomplete',
  'body-too-large',
  'content-type-unsupported',
  'content-coding-unsupported',
]

/** Bytes. Twice the longest texts of an item with every character escaped. */
const maxJsonBody = 131_072

/** Milliseconds in which the whole body must arrive. A client must not keep an authorized request open. */
const deadline = 30_000

/** The number of unknown members that a problem names. */
const maxFaults = 20

export type JsonObject = Readonly<Record<string, unknown>>

const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads a body that is a JSON object with these members, all optional. Throws Fault `content-type-unsupported`,
 * `content-coding-unsupported`, `body-too-large`, `request-timeout` and `json-malformed`.
 */
export async function readJsonObject(
  request: IncomingMessage,
  readBody: BodyReader,
  members: readonly string[],
  types: readonly string[] = ['application/json'],
): Promise<JsonObject> {
  const { headers } = request
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (!types.includes(type))
    throw new Fault('content-type-unsupported', `Send the body with Content-Type: ${types.join(' or ')}.`)
  if (headers['content-encoding'] !== undefined)
    throw new Fault('content-coding-unsupported', 'Send the body without Content-Encoding.')
  const value = parse(await withDeadline(readAll(request, readBody)))
  if (!isObject(value)) throw new Fault('json-malformed', 'The body is not a JSON object.')
  const known: ReadonlySet<string> = new Set(members)
  const unknown = Object.keys(value).filter((name) => !known.has(name))
  if (unknown.length > 0) {
    const detail = `The object has no such member; its members are ${members.join(', ')}.`
    throw malformed(unknown.slice(0, maxFaults).map((parameter) => ({ parameter, detail })))
  }
  return value
}

/** The fault of members that are unknown or have wrong values. */
export function malformed(parameters: readonly ParameterFault[]): Fault {
  const [first] = parameters
  const reason = first ? ` \`${first.parameter.slice(0, 100)}\`: ${first.detail}` : ''
  return new Fault('json-malformed', `The operation does not accept the JSON object.${reason}`, {
    parameters,
  })
}

async function readAll(request: IncomingMessage, readBody: BodyReader): Promise<Uint8Array> {
  const tooLarge = new Fault('body-too-large', `The body has more than ${maxJsonBody} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > maxJsonBody) throw tooLarge
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of readBody(request)) {
    size += chunk.byteLength
    if (size > maxJsonBody) throw tooLarge
    // The memory of a chunk is freed when the next one is read.
    chunks.push(Uint8Array.from(chunk))
  }
  return Buffer.concat(chunks)
}

async function withDeadline<T>(reading: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    reject(new Fault('request-timeout', `The body took longer than ${deadline / 1000} seconds to arrive.`))
  }, deadline)
  try {
    return await Promise.race([reading, promise])
  } finally {
    clearTimeout(timer)
  }
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(body))
  } catch (cause) {
    throw new Fault('json-malformed', 'The body is not JSON in UTF-8.', { cause })
  }
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
