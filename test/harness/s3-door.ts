import { createHash, hash } from 'node:crypto'
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll } from 'vitest'
import { signingKeyOf, signWith, stringToSign } from '../../packages/server/src/s3/signature-v4.ts'
import { runHere } from './commands.ts'
import { type RawResponse, sendRaw } from './raw-http.ts'
import { startServer, type TestServer } from './server.ts'

/** The keys of a token. */
export interface Pair {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** A real server with a port for the S3 protocol. */
export interface S3Server extends AsyncDisposable {
  readonly server: TestServer
  readonly endpoint: string
}

/** Where a server that has a port for it answers the S3 protocol. */
export const s3EndpointOf = (server: Pick<TestServer, 'log'>): string =>
  `http://127.0.0.1:${server.log().find(({ msg }) => msg === 'listening')?.['s3Port']}`

/** Starts a server with a port for the S3 protocol. */
export async function startS3Server(
  settings: Readonly<Record<string, string>> = {},
  data?: string,
): Promise<S3Server> {
  const server = await startServer(
    {
      MEDIABUCKET_S3_PORT: '0',
      MEDIABUCKET_ADDRESS_RATE: 'off',
      MEDIABUCKET_AUTH_FAILURE_RATE: 'off',
      ...settings,
    },
    data,
  )
  return {
    ...{ server, endpoint: s3EndpointOf(server) },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** Creates a token as the command does, and returns its keys. */
export async function makePair({ data }: Pick<TestServer, 'data'>, ...args: string[]): Promise<Pair> {
  const { printed } = await runHere(data, 'token create', '--s3', '--json', ...args)
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = JSON.parse(printed)
  return { accessKeyId, secretAccessKey }
}

/** The keys of a service token that may do everything. */
export const makeServicePair = (server: Pick<TestServer, 'data'>): Promise<Pair> =>
  makePair(server, '--service', '--scope', 'buckets:manage,media:read,media:write,media:delete')

const clientOptions = { region: 'us-east-1', forcePathStyle: true, maxAttempts: 1 }

export const clientOf = (endpoint: string, credentials: Pair): S3Client =>
  new S3Client({ endpoint, credentials, ...clientOptions })

/** The server of a test file with a port for the S3 protocol, and its operator's keys. It runs while the tests run. */
export class S3Door {
  #started: { readonly server: TestServer; readonly endpoint: string; readonly pair: Pair } | null = null
  #buckets = 0

  /** Sends requests with the keys. */
  readonly client = new S3Client({
    endpoint: async () => ({ url: new URL(this.endpoint) }),
    credentials: async () => this.pair,
    ...clientOptions,
  })

  get #running() {
    if (this.#started === null) throw new Error('the server starts before the tests')
    return this.#started
  }
  get server(): TestServer {
    return this.#running.server
  }
  get endpoint(): string {
    return this.#running.endpoint
  }
  get host(): string {
    return new URL(this.endpoint).host
  }
  get pair(): Pair {
    return this.#running.pair
  }

  async start(settings: Readonly<Record<string, string>>): Promise<void> {
    const { server, endpoint } = await startS3Server(settings)
    this.#started = { server, endpoint, pair: await makeServicePair(server) }
  }

  async stop(): Promise<void> {
    this.client.destroy()
    await this.#started?.server[Symbol.asyncDispose]()
  }

  /** A new bucket with these options of `bucket set`. */
  readonly newBucket = async (...options: string[]): Promise<string> => {
    this.#buckets += 1
    const Bucket = `bucket-${this.#buckets}`
    await this.client.send(new CreateBucketCommand({ Bucket }))
    if (options.length > 0) await this.server.command('bucket', 'set', Bucket, ...options)
    return Bucket
  }

  readonly put = (Bucket: string, Key: string, Body: string | Uint8Array, more = {}) =>
    this.client.send(new PutObjectCommand({ Bucket, Key, Body, ...more }))

  readonly textOf = async (Bucket: string, Key: string, more = {}): Promise<string | undefined> => {
    const { Body } = await this.client.send(new GetObjectCommand({ Bucket, Key, ...more }))
    return await Body?.transformToString()
  }

  /** Sends a signed request as it is. */
  readonly send = (target: string, signing: Parameters<typeof sendTarget>[3] = {}): Promise<RawResponse> =>
    sendTarget(this.pair, this.endpoint, target, signing)
}

/** Starts a server before the tests of this file, and ends it after them. */
export function useS3Door(settings: Readonly<Record<string, string>> = {}): S3Door {
  const door = new S3Door()
  beforeAll(() => door.start(settings))
  afterAll(() => door.stop())
  return door
}

/** What of a signed request differs from a good one. */
export interface Signing {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Milliseconds since 1970. */
  readonly time?: number
  readonly payloadHash?: string
  readonly scope?: string
  /** How the client signs characters of headers that are not ASCII. */
  readonly encoding?: 'latin1' | 'utf8'
  /** Headers that are sent but not signed. */
  readonly unsigned?: Readonly<Record<string, string>>
}

const basicTime = (time: number): string =>
  `${new Date(time).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`

/** The headers of a request that is signed in its headers, and what its chunks need. */
export function signHeaders(pair: Pair, url: string, signing: Signing = {}) {
  const { host, pathname, search } = new URL(url)
  return signTarget(pair, host, pathname + search, signing)
}

/** The same for a target that is sent as it is, which a URL might change. */
export function signTarget(pair: Pair, host: string, target: string, signing: Signing = {}) {
  const { method = 'GET', headers = {}, body = '', unsigned = {} } = signing
  const time = basicTime(signing.time ?? Date.now())
  const scope = signing.scope ?? `${time.slice(0, 8)}/us-east-1/s3/aws4_request`
  const payloadHash = signing.payloadHash ?? createHash('sha256').update(body).digest('hex')
  const all: Readonly<Record<string, string>> = {
    ...headers,
    ...{ host, 'x-amz-date': time, 'x-amz-content-sha256': payloadHash },
  }
  const signedHeaders = Object.keys(all)
    .map((name) => name.toLowerCase())
    .sort()
  const key = signingKeyOf(pair.secretAccessKey, scope)
  const rawHeaders = Object.entries(all).flat()
  const [path = '', search = ''] = target.split(/\?(.*)/s)
  const text = stringToSign(
    { method, path, query: new URLSearchParams(search), rawHeaders, payloadHash },
    { scope, signedHeaders },
    time,
    signing.encoding,
  )
  const signature = signWith(key, text)
  const authorization = `AWS4-HMAC-SHA256 Credential=${pair.accessKeyId}/${scope}, SignedHeaders=${signedHeaders.join(';')}, Signature=${signature}`
  const signed: Readonly<Record<string, string>> = { ...all, ...unsigned, authorization }
  return { headers: signed, authorization, key, time, scope, signature }
}

/** The bytes of a request whose connection the server closes. Characters of the head are bytes of Latin-1. */
export function rawRequest(
  method: string,
  target: string,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array = '',
): Buffer {
  const bytes = Buffer.from(body)
  const framing = Object.hasOwn(headers, 'transfer-encoding')
    ? {}
    : { 'content-length': `${bytes.byteLength}` }
  const lines = Object.entries({ ...framing, ...headers, connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return Buffer.concat([
    Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'),
    bytes,
  ])
}

/** Sends a signed request as it is, without a client that would change or refuse it. */
export async function sendTarget(
  pair: Pair,
  endpoint: string,
  target: string,
  signing: Signing & { readonly host?: string } = {},
): Promise<RawResponse> {
  const { method = 'GET', body = '' } = signing
  const { headers } = signTarget(pair, signing.host ?? new URL(endpoint).host, target, signing)
  return await sendRaw(endpoint, rawRequest(method, target, headers, body))
}

/** Status and code of an error, which must be a document of S3; `200 ` for a success. */
export function codeOf({ status, headers, body }: RawResponse): string {
  if (status < 300) return `${status} `
  const [, code] = /^<\?xml[^>]*>\s*<Error><Code>(\w+)<\/Code>/.exec(body) ?? []
  if (code === undefined || headers.get('content-type') !== 'application/xml')
    throw new Error(`not an error of S3: ${status} ${body.slice(0, 200)}`)
  return `${status} ${code}`
}

/** Sends a request that is signed in its headers. */
export function sendSigned(pair: Pair, url: string, signing: Signing = {}): Promise<Response> {
  const { headers } = signHeaders(pair, url, signing)
  const { method = 'GET', body } = signing
  return fetch(url, {
    method,
    headers,
    redirect: 'manual',
    ...(body === undefined ? {} : { body: body as string }),
  })
}

/** A body of signed chunks. `end` is what follows the last chunk. */
export function signedChunks(
  { key, time, scope, signature }: Omit<ReturnType<typeof signHeaders>, 'headers' | 'authorization'>,
  pieces: readonly string[],
): string {
  let previous = signature
  const chunks = [...pieces, ''].map((piece) => {
    const digest = `${hash('sha256', '')}\n${hash('sha256', piece)}`
    previous = signWith(key, `AWS4-HMAC-SHA256-PAYLOAD\n${time}\n${scope}\n${previous}\n${digest}`)
    return `${piece.length.toString(16)};chunk-signature=${previous}\r\n${piece}\r\n`
  })
  return chunks.join('')
}

/** The code of an error of the S3 protocol. */
export async function errorCode(response: Response): Promise<string> {
  const [, code = ''] = /<Code>(\w+)<\/Code>/.exec(await response.text()) ?? []
  return `${response.status} ${code}`
}
