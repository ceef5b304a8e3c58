import { type FileHandle, mkdtemp, open, rmdir, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asTemporaryFault } from './temporary-fault.ts'

/** Bytes of a part of an upload. S3 allows parts of at least 5 MiB, and 10,000 parts. */
const firstLength = 8 * 1024 * 1024

/** Parts of one length. Every further thousand is twice as long, so that the largest objects have few enough parts. */
const partsPerLength = 1_000

/** The length of the part with this number, from 1. */
export const partLength = (number: number): number =>
  firstLength * 2 ** Math.floor((number - 1) / partsPerLength)

/** Lengths of buffers for a part that grows. */
const growth = [256 * 1024, 1024 * 1024]

/** Bytes of parts in memory, of all uploads together. Parts beyond it are collected in temporary files. */
const memoryLimit = 64 * 1024 * 1024

/** Parts that are sent at the same time. */
const maxSends = 8

/** Unused buffers of the first length that stay allocated. */
const maxSpare = 4

/** Bytes of one part, as they are received. */
export interface Part {
  readonly size: number
  /** Bytes that the part can still take. */
  readonly room: number
  /** Copies the bytes, which must not exceed the room. Throws Fault `overloaded` if there is no space for temporary files. */
  append(bytes: Uint8Array): Promise<void>
  /** Waits for its turn, then calls `send` with all bytes, which are valid until it resolves. Frees the part. */
  send<T>(send: (bytes: Uint8Array<ArrayBuffer>) => Promise<T>): Promise<T>
  /** Returns a copy of the bytes, and frees the part. */
  take(): Promise<Uint8Array<ArrayBuffer>>
  /** Frees the part. */
  discard(): Promise<void>
}

/** The memory for parts of uploads. A slow upload never keeps others waiting: without memory, its part is collected in a file. */
export interface PartMemory {
  /** A part of at most `length` bytes. */
  create(length: number): Part
}

export function createPartMemory(limit = memoryLimit): PartMemory {
  let used = 0
  let sending = 0
  const waiting: (() => void)[] = []
  const spare: Buffer<ArrayBuffer>[] = []

  async function turn(): Promise<void> {
    if (sending < maxSends) sending += 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
  }
  function endTurn(): void {
    const next = waiting.shift()
    if (next) next()
    else sending -= 1
  }

  function allocate(length: number): Buffer<ArrayBuffer> | null {
    if (used + length > limit) return null
    used += length
    return (length === firstLength && spare.pop()) || Buffer.allocUnsafeSlow(length)
  }
  function free(buffer: Buffer<ArrayBuffer>): void {
    used -= buffer.length
    if (buffer.length === firstLength && spare.length < maxSpare) spare.push(buffer)
  }

  return {
    create(length) {
      let buffer: Buffer<ArrayBuffer> | null = null
      let file: FileHandle | null = null
      let size = 0

      /** Null if there is not enough memory. */
      function grow(needed: number): Buffer<ArrayBuffer> | null {
        if (buffer !== null && needed <= buffer.length) return buffer
        const larger = allocate(growth.find((step) => step >= needed && step < length) ?? length)
        if (larger === null) return null
        if (buffer !== null) {
          buffer.copy(larger, 0, 0, size)
          free(buffer)
        }
        buffer = larger
        return larger
      }

      async function spill(): Promise<FileHandle> {
        const created = await createUnnamedFile()
        file = created
        if (buffer !== null) {
          await writeWhole(created, buffer.subarray(0, size), 0)
          free(buffer)
          buffer = null
        }
        return created
      }

      async function write(chunk: Uint8Array): Promise<void> {
        try {
          await writeWhole(file ?? (await spill()), chunk, size)
        } catch (error) {
          throw asTemporaryFault(error)
        }
      }

      async function discard(): Promise<void> {
        if (buffer !== null) free(buffer)
        buffer = null
        size = 0
        await file?.close()
        file = null
      }

      async function bytes(): Promise<Uint8Array<ArrayBuffer>> {
        if (file === null) return buffer?.subarray(0, size) ?? new Uint8Array(0)
        const read = Buffer.allocUnsafeSlow(size)
        for (let done = 0; done < size; ) {
          const { bytesRead } = await file.read(read, done, size - done, done)
          if (bytesRead === 0) throw new Error('a temporary file ended before its size')
          done += bytesRead
        }
        return read
      }

      return {
        get size() {
          return size
        },
        get room() {
          return length - size
        },
        async append(chunk) {
          const into = file === null ? grow(size + chunk.byteLength) : null
          if (into !== null) into.set(chunk, size)
          else await write(chunk)
          size += chunk.byteLength
        },
        async send(send) {
          await turn()
          try {
            return await send(await bytes())
          } finally {
            endTurn()
            await discard()
          }
        },
        async take() {
          const taken = (await bytes()).slice()
          await discard()
          return taken
        },
        discard,
      }
    },
  }
}

/** A file that the system removes when it is closed, also after a crash. */
async function createUnnamedFile(): Promise<FileHandle> {
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-part-'))
  const path = join(directory, 'part')
  try {
    const file = await open(path, 'wx+', 0o600)
    await unlink(path)
    return file
  } finally {
    await rmdir(directory)
  }
}

async function writeWhole(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.byteLength; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done, position + done)
    done += bytesWritten
  }
}
