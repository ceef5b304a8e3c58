import { closeSync, constants, fstatSync, openSync, read, type Stats } from 'node:fs'
import { Readable } from 'node:stream'
import { errorCode } from '../../core/error-code.ts'
import { Fault } from '../../core/fault.ts'
import type { OpenBlob } from '../blobs.ts'
import { ForeignEntry } from './entry-type.ts'

/** Bytes per read. Measured: twice as many are a fifth faster, but each slow reader holds two or three of them. */
const readLength = 256 * 1024

// Without O_NONBLOCK a planted pipe would hold a thread of the pool for ever; on regular files it changes nothing.
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Null when there is no such file, or no directory for it; Fault `media-unknown` where anything foreign stands (B8). */
export async function openStoredFile(
  path: string,
  directoryExists: () => Promise<boolean>,
): Promise<OpenBlob | null> {
  try {
    return (await directoryExists()) ? openFile(path) : null
  } catch (error) {
    if (!(error instanceof ForeignEntry)) throw error
    throw new Fault('media-unknown', 'There is no such item.', { cause: error })
  }
}

/** Null when there is no such file; throws ForeignEntry when it is a link or no regular file (B8). */
function openFile(path: string): OpenBlob | null {
  const descriptor = openFound(path)
  if (descriptor === null) return null
  let status: Stats
  try {
    // At once: the system knows it of an open file without looking at the disk.
    status = fstatSync(descriptor)
    if (!status.isFile()) throw new ForeignEntry(`${path} is not a regular file`)
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
  let reading: Promise<void> | null = null
  let closing: Promise<void> | null = null

  // Another file may get the number of a closed descriptor, so it is never closed under a read.
  const closeUnused = async (): Promise<void> => {
    await reading?.catch(() => undefined)
    closeSync(descriptor)
  }

  const blob: OpenBlob = {
    size: status.size,
    path,
    read(into, position) {
      if (closing) throw new Error('a blob was read after it had been closed')
      reading = readWhole(descriptor, into, position)
      return reading
    },
    stream: (start, end) => streamRange(blob, start, end),
    close() {
      closing ??= closeUnused()
      return closing
    },
  }
  return blob
}

/** At once, as all that only looks at a name (files.ts). */
function openFound(path: string): number | null {
  try {
    return openSync(path, flags)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT') return null
    if (code === 'ELOOP' || code === 'ENXIO') throw new ForeignEntry(`${path} is not a regular file`)
    throw error
  }
}

function readWhole(descriptor: number, into: Uint8Array, position: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const readFrom = (done: number): void =>
      read(descriptor, into, done, into.byteLength - done, position + done, (error, bytesRead) => {
        if (error) reject(error)
        else if (bytesRead === 0) reject(new Error('a blob ended before its size'))
        else if (done + bytesRead < into.byteLength) readFrom(done + bytesRead)
        else resolve()
      })
    readFrom(0)
  })
}

/** Closes the blob when it ends or is destroyed. */
function streamRange(blob: OpenBlob, start: number, end: number): Readable {
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
