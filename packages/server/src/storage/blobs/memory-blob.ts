import { Readable } from 'node:stream'
import { BlobTruncatedError, type LocalBytes, type LocalContent, type OpenBlob } from './blobs.ts'

/** Bytes in memory as an open blob. `isShared` is as in LocalContent. */
export const openMemoryBlob = (bytes: Uint8Array, isShared = false): OpenBlob =>
  new MemoryBlob({ type: 'bytes', bytes, ...(isShared && { isShared }) })

class MemoryBlob implements OpenBlob {
  readonly content: LocalContent & { readonly type: 'bytes' }

  constructor(content: LocalContent & { readonly type: 'bytes' }) {
    this.content = content
  }

  get size(): number {
    return this.content.bytes.byteLength
  }

  async share(): Promise<LocalBytes> {
    return shareContent(this.content)
  }

  async read(into: Uint8Array, position: number): Promise<void> {
    const end = position + into.byteLength
    if (end > this.size) throw new BlobTruncatedError('a blob ended before its size')
    into.set(this.content.bytes.subarray(position, end))
  }

  stream(start: number, end: number): Readable {
    return streamRange(this, start, end)
  }

  async close(): Promise<void> {}
}

/** Bytes or a file that stay available without a release. */
export const shareContent = (content: LocalContent): LocalBytes => ({
  content,
  isWhole: true,
  release: async () => undefined,
})

/** Bytes for each read. More would be faster, but each slow reader holds two or three buffers. */
export const readLength = 256 * 1024

/** The bytes `start` to `end` of a blob, both inclusive. Closes the blob when it ends or is destroyed. */
export const streamRange = (blob: Pick<OpenBlob, 'read' | 'close'>, start: number, end: number): Readable =>
  new BlobRange(blob, start, end)

class BlobRange extends Readable {
  readonly #blob: Pick<OpenBlob, 'read' | 'close'>
  readonly #end: number
  #position: number

  constructor(blob: Pick<OpenBlob, 'read' | 'close'>, start: number, end: number) {
    super({ highWaterMark: readLength })
    this.#blob = blob
    this.#position = start
    this.#end = end
  }

  override _read(): void {
    this.#readNext().catch((error: unknown) => {
      this.destroy(error instanceof Error ? error : new Error(String(error)))
    })
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#blob.close().then(
      () => done(error),
      (failure: Error) => done(error ?? failure),
    )
  }

  async #readNext(): Promise<void> {
    const wanted = Math.min(readLength, this.#end + 1 - this.#position)
    if (wanted > 0) {
      const buffer = Buffer.allocUnsafeSlow(wanted)
      await this.#blob.read(buffer, this.#position)
      if (this.destroyed) return
      this.#position += wanted
      this.push(buffer)
    }
    if (this.#position > this.#end) this.push(null)
  }
}
