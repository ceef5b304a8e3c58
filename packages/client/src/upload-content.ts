/**
 * The sources that can be uploaded. A File, a Blob and bytes can be sent again in a retry; a stream (also one of Node.js,
 * or any async iterable of bytes) is sent once. In Node.js, `fs.openAsBlob(path)` returns a Blob of a file on disk.
 */
export type UploadSource = Blob | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

/** The content of an upload, from any kind of source. */
export interface UploadContent {
  /** Bytes; null for a stream, whose size is unknown. */
  readonly size: number | null
  /** The type and the name of the source; null if it has none. */
  readonly type: string | null
  readonly name: string | null
  /** Name, type and time of a File; null for other sources. */
  readonly identity: string | null
  /** The whole content, for sources that can be sent more than once; null for a stream. */
  readonly blob: (() => Blob) | null
  /** The bytes from the start. A stream can be read only once. */
  readonly chunks: () => AsyncIterator<Uint8Array>
  /** Closes a stream that will not be read to its end. */
  readonly release: () => void
}

/** Throws a `TypeError` for any other value. In browsers, a stream is read to its end first. */
export async function uploadContent(
  source: UploadSource,
  signal: AbortSignal | undefined,
): Promise<UploadContent> {
  if (typeof source !== 'object' || source === null) throw wrongSource(source)
  if (isBlob(source)) return contentOfBlob(source)
  if (ArrayBuffer.isView(source)) return contentOfBytes(bytesOf(source))
  const content = contentOfStream(source)
  return takesStreams() ? content : contentOfBlob(await collect(content, signal))
}

/** A string is often meant as a path. */
const wrongSource = (source: unknown): TypeError =>
  new TypeError(
    `the source of an upload must be a File, Blob, Uint8Array, ReadableStream or async iterable of bytes, not ${source === null ? 'null' : typeof source}. For a path in Node.js, use await fs.openAsBlob(path)`,
  )

function contentOfBlob(blob: Blob): UploadContent {
  const name = nameOfBlob(blob)
  return {
    size: blob.size,
    type: blob.type || null,
    name,
    identity:
      name !== null && 'lastModified' in blob ? JSON.stringify([name, blob.type, blob.lastModified]) : null,
    blob: () => blob,
    chunks: () => readChunks(blob.stream().getReader()),
    release: () => {},
  }
}

/** The name of a File, with its path within the folder that a user chose. */
function nameOfBlob(blob: Blob): string | null {
  const path = 'webkitRelativePath' in blob ? blob.webkitRelativePath : null
  if (typeof path === 'string' && path !== '') return path
  return 'name' in blob && typeof blob.name === 'string' ? blob.name : null
}

/** The content of bytes in memory. */
export function contentOfBytes(bytes: Uint8Array): UploadContent {
  return {
    size: bytes.byteLength,
    type: null,
    name: null,
    identity: null,
    blob: () => new Blob([bytes as Uint8Array<ArrayBuffer>]),
    chunks: () => once(bytes),
    release: () => {},
  }
}

function contentOfStream(source: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>): UploadContent {
  const unknown = { size: null, type: null, name: null, identity: null, blob: null }
  if (isReadableStream(source)) {
    const reader = source.getReader()
    const release = () => void reader.cancel().catch(() => {})
    return { ...unknown, chunks: () => readChunks(reader), release }
  }
  if (!isAsyncIterable(source)) throw wrongSource(source)
  const chunks = source[Symbol.asyncIterator]()
  const release = () => {
    // Ending the iterator does not close a Node.js stream whose iterator never ran.
    if ('destroy' in source && typeof source.destroy === 'function') source.destroy()
    else chunks.return?.().catch(() => {})
  }
  return { ...unknown, chunks: () => chunks, release }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes
}

async function* readChunks(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

async function collect(content: UploadContent, signal: AbortSignal | undefined): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  const chunks = content.chunks()
  signal?.addEventListener('abort', content.release, { once: true })
  try {
    for (;;) {
      signal?.throwIfAborted()
      const { done, value } = await chunks.next()
      signal?.throwIfAborted()
      if (done) return new Blob(parts)
      parts.push(new Uint8Array(bytesOf(value)))
    }
  } catch (error) {
    content.release()
    // The release may have caused another error; the abort reason takes precedence.
    signal?.throwIfAborted()
    throw error
  } finally {
    signal?.removeEventListener('abort', content.release)
  }
}

/** Throws a `TypeError` for text in a stream, whose encoding would be undefined. */
export function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  throw new TypeError(
    `a source must yield bytes (Uint8Array), and yielded ${chunk === null ? 'null' : typeof chunk}`,
  )
}

// Checked by members, not by class: files may come from another window or from a library.
export const isBlob = (source: object): source is Blob =>
  'size' in source && 'slice' in source && 'stream' in source && typeof source.stream === 'function'

/** Whether the size of a source is unknown until its end. */
export const isStream = (source: UploadSource): boolean => !isBlob(source) && !ArrayBuffer.isView(source)

const isReadableStream = (source: object): source is ReadableStream<Uint8Array> =>
  'getReader' in source && typeof source.getReader === 'function'

const isAsyncIterable = (source: object): source is AsyncIterable<Uint8Array> =>
  Symbol.asyncIterator in source

/** The members of XMLHttpRequest that uploads use, declared here because the package is compiled without DOM types. */
export interface UploadingXhr {
  readonly upload: { onprogress: ((event: { readonly loaded: number }) => void) | null }
  readonly status: number
  readonly responseText: string
  readonly responseURL: string
  onload: (() => void) | null
  onerror: (() => void) | null
  open(method: string, url: string): void
  setRequestHeader(name: string, value: string): void
  getAllResponseHeaders(): string
  send(body: Blob): void
  abort(): void
}

interface Platform {
  readonly XMLHttpRequest?: new () => UploadingXhr
  readonly process?: { readonly versions?: { readonly node?: string } }
}

/** XMLHttpRequest in browsers; undefined in service workers and elsewhere. */
export const xhrOfPlatform = (): (new () => UploadingXhr) | undefined =>
  (globalThis as Platform).XMLHttpRequest

/**
 * Whether fetch accepts a stream as a body. Node.js, Deno and Bun do. Some browsers send the text
 * "[object ReadableStream]" instead, and others require HTTP/2, so streams are not used in browsers.
 */
export const takesStreams = (): boolean =>
  xhrOfPlatform() === undefined && (globalThis as Platform).process?.versions?.node !== undefined
