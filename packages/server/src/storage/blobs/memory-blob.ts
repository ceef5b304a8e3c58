import { Readable } from 'node:stream'
import { BlobTruncatedError, type LocalBytes, type LocalContent, type OpenBlob } from './blobs.ts'

/** Bytes in memory as an open blob. `isShared` is as in LocalContent. */
export function openMemoryBlob(bytes: Uint8Array, isShared = false): OpenBlob {
  const content = { type: 'bytes', bytes, ...(isShared && { isShared }) } as const
  const blob: OpenBlob = {
    size: bytes.byteLength,
    content,
    share: async () => shareContent(content),
    async read(into, position) {
      const end = position + into.byteLength
      if (end > bytes.byteLength) throw new BlobTruncatedError('a blob ended before its size')
      into.set(bytes.subarray(position, end))
    },
    stream: (start, end) => streamRange(blob, start, end),
    close: async () => undefined,
  }
  return blob
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
export function streamRange(blob: Pick<OpenBlob, 'read' | 'close'>, start: number, end: number): Readable {
  let position = start
  const stream = new Readable({
    highWaterMark: readLength,
    read() {
      readNext().catch((error: unknown) => {
        stream.destroy(error instanceof Error ? error : new Error(String(error)))
      })
    },
    destroy(error, done) {
      blob.close().then(
        () => done(error),
        (failure: Error) => done(error ?? failure),
      )
    },
  })

  async function readNext(): Promise<void> {
    const wanted = Math.min(readLength, end + 1 - position)
    if (wanted > 0) {
      const buffer = Buffer.allocUnsafeSlow(wanted)
      await blob.read(buffer, position)
      if (stream.destroyed) return
      position += wanted
      stream.push(buffer)
    }
    if (position > end) stream.push(null)
  }

  return stream
}
