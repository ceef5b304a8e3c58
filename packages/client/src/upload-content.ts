import { takesStreams } from './platform.ts'

/**
 * What can be uploaded. A File, a Blob and bytes can be sent again when a try fails; a stream (also one of Node.js,
 * or any async iterable of bytes) is sent once. In Node.js, `fs.openAsBlob(path)` makes a Blob of a file on disk.
 */
export type UploadSource = Blob | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

/** What is sent, whatever it came from. */
export interface UploadContent {
  /** Bytes; null when only the end of a stream will tell. */
  readonly size: number | null
  /** The type and name that the source tells; null where it tells none. */
  readonly type: string | null
  readonly name: string | null
  /** What tells a File from others; null for other sources. */
  readonly identity: string | null
  /** The whole of it, for what can be sent more than once; null for a stream. */
  readonly blob: (() => Blob) | null
  /** The bytes, from the first one on; a stream has them once. */
  readonly chunks: () => AsyncIterator<Uint8Array>
  /** Lets go of a stream that will not be read to its end. */
  readonly release: () => void
}

/** Throws a `TypeError` for what is no source. Where requests cannot stream, a stream is collected first. */
export async function uploadContent(
  source: UploadSource,
  signal: AbortSignal | undefined,
): Promise<UploadContent> {
  if (isBlob(source)) return contentOfBlob(source)
  if (ArrayBuffer.isView(source)) return contentOfBytes(bytesOf(source))
  const content = contentOfStream(source)
  return takesStreams() ? content : contentOfBlob(await collect(content, signal))
}

function contentOfBlob(blob: Blob): UploadContent {
  const name = 'name' in blob && typeof blob.name === 'string' ? blob.name : null
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

/** Bytes that are in memory already. */
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
  if (!isAsyncIterable(source)) {
    throw new TypeError('expected a File, Blob, Uint8Array, ReadableStream or async iterable of bytes')
  }
  const chunks = source[Symbol.asyncIterator]()
  const release = () => {
    // A stream of Node.js whose iterator never ran is not closed by ending the iterator.
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
    // Letting go of a stream may have made it fail in its own way.
    signal?.throwIfAborted()
    throw error
  } finally {
    signal?.removeEventListener('abort', content.release)
  }
}

/** Text in a stream would be sent in an encoding that nobody chose: it is a `TypeError`. */
export function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  throw new TypeError(
    `a source must give bytes (Uint8Array), and gave ${chunk === null ? 'null' : typeof chunk}`,
  )
}

// By their members and not by their class: files may come from another window, or from a library.
const isBlob = (source: object): source is Blob =>
  'size' in source && 'slice' in source && 'stream' in source && typeof source.stream === 'function'

/** Whether a source has to be read to its end before anybody knows its size. */
export const isStream = (source: UploadSource): boolean => !isBlob(source) && !ArrayBuffer.isView(source)

const isReadableStream = (source: object): source is ReadableStream<Uint8Array> =>
  'getReader' in source && typeof source.getReader === 'function'

const isAsyncIterable = (source: object): source is AsyncIterable<Uint8Array> =>
  Symbol.asyncIterator in source
