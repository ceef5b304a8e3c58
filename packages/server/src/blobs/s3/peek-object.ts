import type { ObjectCalls } from './object-calls.ts'
import { readRange } from './read-object.ts'

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
