import { type FileHandle, open, stat } from 'node:fs/promises'
import { CommandError } from '../command.ts'

interface Range {
  readonly start: number
  readonly end: number
}

/** Bytes of one read. */
const chunkSize = 256 * 1024

/**
 * A file on the disk as a Blob of any size, read on demand. Reading fails if the file has changed. (Blobs of Node's openAsBlob
 * lose the bytes beyond 2 GB: nodejs/node#52585.)
 */
export class DiskFile extends Blob {
  readonly #path: string
  readonly #range: Range
  /** Changes with the file: its size and its modification time in nanoseconds. */
  readonly version: string
  override readonly size: number

  private constructor(path: string, version: string, range: Range) {
    super([])
    this.#path = path
    this.#range = range
    this.version = version
    this.size = range.end - range.start
  }

  static async at(path: string): Promise<DiskFile> {
    const { size, mtimeNs } = await stat(path, { bigint: true })
    return new DiskFile(path, `${size} ${mtimeNs}`, { start: 0, end: Number(size) })
  }

  override slice(start = 0, end = this.size): DiskFile {
    const at = (offset: number) => Math.min(this.#range.start + offset, this.#range.end)
    return new DiskFile(this.#path, this.version, { start: at(start), end: at(end) })
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = new Uint8Array(this.size)
    let filled = 0
    for await (const chunk of this.#read()) {
      bytes.set(chunk, filled)
      filled += chunk.length
    }
    return bytes.buffer
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return ReadableStream.from(this.#read())
  }

  async *#read(): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
    await using file = await open(this.#path)
    await this.#check(file)
    for (let at = this.#range.start; at < this.#range.end; ) {
      const wanted = new Uint8Array(Math.min(chunkSize, this.#range.end - at))
      const { bytesRead } = await file.read(wanted, 0, wanted.length, at)
      await this.#check(file)
      if (bytesRead === 0) throw changed()
      at += bytesRead
      yield wanted.subarray(0, bytesRead)
    }
  }

  async #check(file: FileHandle): Promise<void> {
    const { size, mtimeNs } = await file.stat({ bigint: true })
    if (`${size} ${mtimeNs}` !== this.version) throw changed()
  }
}

const changed = () => new CommandError('the file changed during the upload; upload it again')
