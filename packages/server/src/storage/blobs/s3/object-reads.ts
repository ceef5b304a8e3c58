import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { connect, isIP, type Socket } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { connect as connectSecurely } from 'node:tls'
import { Fault, itemUnknown } from '../../../core/faults.ts'
import { IncomingMessage } from '../../../core/node-http.ts'
import { createTemporaryDirectory } from '../../temporary-directories.ts'
import { BlobRemovedError, BlobTruncatedError, type LocalBytes, type OpenBlob } from '../blobs.ts'
import { openMemoryBlob } from '../memory-blob.ts'
import { asStoreFault, asTemporaryFault, stalled } from './errors.ts'
import type { ObjectCalls } from './object-calls.ts'

type Calls = Pick<ObjectCalls, 'get' | 'head' | 'signUrl' | 'timeouts'>

/** The objects of a store, and what makes them available to other processes. */
export interface ObjectSources {
  readonly calls: Calls
  readonly shares: Pick<ObjectShares, 'share'>
}

/** As `BlobStore.open`. */
export async function openObject(
  sources: ObjectSources,
  key: string,
  wholeUpTo: number,
): Promise<OpenBlob | null> {
  const { calls } = sources
  const found = wholeUpTo > 0 ? await openSmall(calls, key, wholeUpTo) : await calls.head(key)
  if (found === null) return null
  return typeof found === 'number' ? new RemoteBlob(sources, key, found) : openMemoryBlob(found)
}

/** The bytes of an object of up to `wholeUpTo` bytes, or the size of a larger one. */
async function openSmall(calls: Calls, key: string, wholeUpTo: number): Promise<Buffer | number | null> {
  const found = await calls.get(key, 0, wholeUpTo - 1).catch(async (error: unknown) => {
    // A range of an empty object cannot be satisfied.
    if ((await calls.head(key)) === 0) return { body: Readable.from([]), size: 0, length: 0 }
    throw error
  })
  if (found === null) return null
  const { body, size } = found
  if (size > wholeUpTo) {
    body.destroy()
    return size
  }
  const bytes = Buffer.allocUnsafeSlow(size)
  await readRange({ get: async () => found, timeouts: calls.timeouts }, key, 0, bytes)
  return bytes
}

/** An object that is read in ranges. */
class RemoteBlob implements OpenBlob {
  readonly size: number
  readonly content: OpenBlob['content']
  readonly #store: ObjectSources
  readonly #key: string

  constructor(store: ObjectSources, key: string, size: number) {
    const { calls } = store
    this.size = size
    this.content = {
      type: 'object',
      stream: (start, end) => streamObject(calls, key, start, end),
      signUrl: (headers, lifetime) => calls.signUrl(key, headers, lifetime),
    }
    this.#store = store
    this.#key = key
  }

  share(): Promise<LocalBytes> {
    return this.#store.shares.share(this.#key, this.size)
  }

  read(into: Uint8Array, position: number): Promise<void> {
    if (position + into.byteLength > this.size) throw new BlobTruncatedError('a blob ended before its size')
    return readRange(this.#store.calls, this.#key, position, into)
  }

  stream(start: number, end: number): Readable {
    return Readable.from(readObject(this.#store.calls, this.#key, start, end), { objectMode: false })
  }

  async close(): Promise<void> {}
}

/**
 * Bytes `start` to `end` of an object, both inclusive, as the store sends them. Throws Fault `storage-unavailable` if the store is
 * too slow, and BlobTruncatedError if the object ends before its size or the connection before the object.
 */
export async function* readObject(
  calls: Pick<ObjectCalls, 'get' | 'timeouts'>,
  key: string,
  start: number,
  end: number,
): AsyncGenerator<Buffer> {
  if (end < start) return
  const found = await calls.get(key, start, end)
  if (found === null) throw new BlobRemovedError('a blob was removed')
  const { body } = found
  let missing = end - start + 1
  let timer: NodeJS.Timeout | undefined
  const chunks = body[Symbol.asyncIterator]()
  try {
    for (;;) {
      // Only while this waits for the store: a slow reader of these bytes is no fault of the store.
      timer = setTimeout(() => body.destroy(stalled()), calls.timeouts.stall)
      const { done, value } = await chunks.next()
      clearTimeout(timer)
      if (done) break
      const bytes: Buffer = value
      missing -= bytes.byteLength
      if (missing < 0) throw new BlobTruncatedError('the store sent more bytes than were requested')
      yield bytes
    }
  } catch (error) {
    throw asStoreFault(error)
  } finally {
    clearTimeout(timer)
    body.destroy()
  }
  if (missing > 0) throw new BlobTruncatedError('a blob ended before its size')
}

/** Reads the whole range into memory. Throws as readObject. */
export async function readRange(
  calls: Pick<ObjectCalls, 'get' | 'timeouts'>,
  key: string,
  start: number,
  into: Uint8Array,
): Promise<void> {
  let at = 0
  for await (const bytes of readObject(calls, key, start, start + into.byteLength - 1)) {
    into.set(bytes, at)
    at += bytes.byteLength
  }
}

/** Bytes from which a connection of its own is faster than one of the SDK. */
const minDirect = 1024 * 1024

/** Milliseconds until a signed URL expires. It is used immediately. */
const lifetime = 3_600_000

/**
 * The bytes `start` to `end` of an object, both inclusive, without a copy in this process. The stream fails if the store is too slow, but
 * it may end early: the caller counts the bytes. Throws as readObject, and Fault `media-unknown` if the object was removed.
 */
async function streamObject(
  calls: Pick<ObjectCalls, 'get' | 'signUrl' | 'timeouts'>,
  key: string,
  start: number,
  end: number,
): Promise<Readable> {
  const length = end - start + 1
  if (length >= minDirect) {
    const url = new URL(await calls.signUrl(key, null, lifetime))
    const socket = await requestBody(url, { start, length }, calls.timeouts.short)
    if (socket !== null) return failWhenStalled(socket, () => socket.bytesRead, calls.timeouts.stall)
  }
  const found = await calls.get(key, start, end)
  if (found === null) throw itemUnknown()
  const { body } = found
  // Only a length that the store has announced is checked by Node.js.
  if (found.length === null || !(body instanceof IncomingMessage)) {
    const get = async () => found
    return Readable.from(readObject({ get, timeouts: calls.timeouts }, key, start, end), {
      objectMode: false,
    })
  }
  if (found.length !== length) {
    body.destroy()
    throw new BlobTruncatedError('the store sends another number of bytes than were requested')
  }
  return failWhenStalled(body, () => body.socket.bytesRead, calls.timeouts.stall)
}

/** Destroys a body whose reader waits for the store for too long. */
function failWhenStalled(body: Readable, received: () => number, timeout: number): Readable {
  const interval = timeout / 4
  let [last, idle] = [-1, 0]
  const timer = setInterval(() => {
    const now = received()
    idle = now === last && body.readableLength === 0 ? idle + interval : 0
    last = now
    if (idle >= timeout) body.destroy(stalled())
  }, interval)
  body.once('close', () => clearInterval(timer))
  return body
}

/** Bytes of the head of a response, at most. */
const maxHead = 32 * 1024

/**
 * Requests `length` bytes from `start` on at a signed URL, on a connection of its own. Returns the connection when exactly the body remains
 * to be read from it; null if the response is anything else, or does not begin in time. Node's parser of responses would copy each
 * chunk of the body into memory of its own, which takes more time than all the rest of a large download.
 */
export async function requestBody(
  url: URL,
  { start, length }: { readonly start: number; readonly length: number },
  timeout: number,
): Promise<Socket | null> {
  const isSecure = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port) || (isSecure ? 443 : 80)
  // TLS names no server by its address (RFC 6066, section 3).
  const servername = isIP(host) === 0 ? host : ''
  const socket = isSecure ? connectSecurely({ host, port, servername }) : connect({ host, port })
  const signal = AbortSignal.timeout(timeout)
  try {
    await once(socket, isSecure ? 'secureConnect' : 'connect', { signal })
    const range = `bytes=${start}-${start + length - 1}`
    socket.write(
      `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nRange: ${range}\r\nConnection: close\r\n\r\n`,
    )
    let received = Buffer.alloc(0)
    for (;;) {
      await once(socket, 'readable', { signal })
      const some: Buffer | null = socket.read()
      if (some === null) {
        if (socket.readableEnded || socket.destroyed) break
        continue
      }
      received = Buffer.concat([received, some])
      const end = received.indexOf('\r\n\r\n')
      if (end < 0 && received.byteLength < maxHead) continue
      if (end < 0 || !announces(received.toString('latin1', 0, end), length)) break
      if (received.byteLength > end + 4) socket.unshift(received.subarray(end + 4))
      return socket
    }
  } catch {
    // The caller requests the object again, and gets the reason.
  }
  // A late error has no other listener.
  socket.on('error', () => undefined).destroy()
  return null
}

/** Whether the head is that of a range of this length, which follows without a transfer coding. */
function announces(head: string, length: number): boolean {
  const lengths = [...head.matchAll(/^content-length:[ \t]*(\d+)[ \t]*$/gim)].map(([, digits]) =>
    Number(digits),
  )
  return (
    /^HTTP\/1\.1 206 /.test(head) &&
    !/^(transfer|content)-encoding:/im.test(head) &&
    lengths.length === 1 &&
    lengths[0] === length
  )
}

/** Bytes of one read: the sniffer reads many short ranges close to one another. */
const window = 65_536

/** Bytes that one peek downloads, at most. */
const maxRead = 16 * 1024 * 1024

/** An object with random access, for sniffing. Its bytes are downloaded when they are read. */
export function peekObject(calls: Pick<ObjectCalls, 'get' | 'timeouts'>, key: string, size: number): Blob {
  let cached = { start: 0, bytes: new Uint8Array(0) }
  let downloaded = 0

  async function read(start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
    const isCached = start >= cached.start && end <= cached.start + cached.bytes.byteLength
    if (!isCached) {
      const bytes = new Uint8Array(Math.min(size, Math.max(end, start + window)) - start)
      downloaded += bytes.byteLength
      if (downloaded > maxRead) throw new Error('the type is not recognized by the bytes that may be read')
      await readRange(calls, key, start, bytes)
      cached = { start, bytes }
    }
    return cached.bytes.slice(start - cached.start, end - cached.start)
  }
  return new RemoteRange(read, 0, size)
}

class RemoteRange extends Blob {
  readonly #read: (start: number, end: number) => Promise<Uint8Array<ArrayBuffer>>
  readonly #start: number
  readonly #end: number

  constructor(
    read: (start: number, end: number) => Promise<Uint8Array<ArrayBuffer>>,
    start: number,
    end: number,
  ) {
    super([])
    Object.defineProperty(this, 'size', { value: end - start })
    this.#read = read
    this.#start = start
    this.#end = end
  }

  override slice(start = 0, end = this.size): Blob {
    const at = (position: number) =>
      Math.min(this.#end, position < 0 ? Math.max(this.#start, this.#end + position) : this.#start + position)
    return new RemoteRange(this.#read, at(start), Math.max(at(start), at(end)))
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.bytes()).buffer
  }

  override bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return this.#read(this.#start, this.#end)
  }

  override async text(): Promise<string> {
    return Buffer.from(await this.bytes()).toString()
  }
}

/** Objects up to this length are shared in memory, others in a temporary file. Bytes. */
const maxMemory = 1024 * 1024

/** Larger objects are not downloaded to this machine. Bytes. */
const maxShared = 256 * 1024 * 1024

/** Objects that are shared at the same time; others wait. */
const maxShares = 8

/** Makes objects available to other processes of this machine. */
export class ObjectShares {
  readonly #calls: Pick<ObjectCalls, 'get' | 'timeouts'>
  #shared = 0
  readonly #waiting: (() => void)[] = []

  constructor(calls: Pick<ObjectCalls, 'get' | 'timeouts'>) {
    this.#calls = calls
  }

  /**
   * Downloads the first `length` bytes of an object of `size` bytes. Throws Fault `variant-unavailable` if they are too many,
   * `overloaded` if there is no space for them, and `media-unknown` if the object was removed.
   */
  async share(key: string, size: number, length: number = size): Promise<LocalBytes> {
    const wanted = Math.min(size, length)
    const isWhole = wanted === size
    if (wanted > maxShared) throw new Fault('variant-unavailable', 'The picture is too large to be decoded.')
    await this.#takeSlot()
    let directory: string | null = null
    let isShared = true
    const release = async () => {
      if (!isShared) return
      isShared = false
      this.#releaseSlot()
      if (directory !== null) await rm(directory, { recursive: true, force: true })
    }
    try {
      if (wanted > maxMemory) {
        const file = await downloadFile(this.#calls, key, wanted)
        directory = file.directory
        return { content: { type: 'file', path: file.path }, isWhole, release }
      }
      const bytes = Buffer.allocUnsafeSlow(wanted)
      await readRange(this.#calls, key, 0, bytes)
      return { content: { type: 'bytes', bytes }, isWhole, release }
    } catch (error) {
      await release()
      throw error instanceof BlobRemovedError ? itemUnknown() : error
    }
  }

  async #takeSlot(): Promise<void> {
    if (this.#shared < maxShares) this.#shared += 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  #releaseSlot(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#shared -= 1
  }
}

/** Downloads the first `length` bytes of an object into a temporary directory of its own. */
async function downloadFile(
  calls: Pick<ObjectCalls, 'get' | 'timeouts'>,
  key: string,
  length: number,
): Promise<{ path: string; directory: string }> {
  const directory = await createTemporaryDirectory().catch((error: unknown) => {
    throw asTemporaryFault(error)
  })
  const path = join(directory, 'picture')
  try {
    await pipeline(readObject(calls, key, 0, length - 1), createWriteStream(path, { mode: 0o600 }))
    return { path, directory }
  } catch (error) {
    await rm(directory, { recursive: true, force: true })
    throw asTemporaryFault(error)
  }
}
