import { Readable } from 'node:stream'
import type { OpenBlob } from './blobs.ts'

/** Bytes for each read. 512 kB would be a fifth faster, but each slow reader holds two or three buffers. */
const readLength = 256 * 1024

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
