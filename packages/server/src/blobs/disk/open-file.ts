import { constants, fstatSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { Fault } from '../../core/fault.ts'
import type { OpenBlob } from '../blobs.ts'
import { type Files, systemCode } from './files.ts'
import { ForeignEntry } from './shards.ts'

/** Bytes per read. Measured: twice as many are a fifth faster, but each slow reader holds two or three of them. */
const readLength = 256 * 1024

// Without O_NONBLOCK a planted pipe would hold a thread of the pool for ever; on regular files it changes nothing.
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Null when there is no such file, or no directory for it; Fault `media-unknown` where anything foreign stands (B8). */
export async function openKept(
  files: Pick<Files, 'open'>,
  path: string,
  directoryExists: () => Promise<boolean>,
): Promise<OpenBlob | null> {
  try {
    return (await directoryExists()) ? await openFile(files, path) : null
  } catch (error) {
    if (!(error instanceof ForeignEntry)) throw error
    throw new Fault('media-unknown', 'There is no such item.', { cause: error })
  }
}

/** Null when there is no such file; throws ForeignEntry when it is a link or no regular file (B8). */
async function openFile(files: Pick<Files, 'open'>, path: string): Promise<OpenBlob | null> {
  const file = await openFound(files, path)
  if (file === null) return null
  try {
    // At once: the system knows it of an open file without looking at the disk.
    const status = fstatSync(file.fd)
    if (!status.isFile()) throw new ForeignEntry(`${path} is not a regular file`)
    return {
      size: status.size,
      path,
      stream: (start, end) => streamRange(file, start, end),
      close: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

async function openFound(files: Pick<Files, 'open'>, path: string): Promise<FileHandle | null> {
  try {
    return await files.open(path, flags)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT') return null
    if (code === 'ELOOP' || code === 'ENXIO') throw new ForeignEntry(`${path} is not a regular file`)
    throw error
  }
}

/** Fails when the file ends before `end`; never closes the file under a read that is still running. */
function streamRange(file: FileHandle, start: number, end: number): Readable {
  let position = start
  let reading: Promise<void> = Promise.resolve()
  const stream = new Readable({
    highWaterMark: readLength,
    read() {
      reading = readNext().catch((error: unknown) => {
        stream.destroy(error instanceof Error ? error : new Error(String(error)))
      })
    },
    destroy(error, done) {
      reading
        .then(() => file.close())
        .then(
          () => done(error),
          (failure: Error) => done(error ?? failure),
        )
    },
  })

  async function readNext(): Promise<void> {
    const wanted = Math.min(readLength, end + 1 - position)
    if (wanted > 0) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafeSlow(wanted), 0, wanted, position)
      if (bytesRead === 0) throw new Error('a blob ended before its size')
      if (stream.destroyed) return
      position += bytesRead
      stream.push(buffer.subarray(0, bytesRead))
    }
    if (position > end) stream.push(null)
  }

  return stream
}
