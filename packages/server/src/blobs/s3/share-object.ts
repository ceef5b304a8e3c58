import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Fault } from '../../core/fault.ts'
import { BlobRemovedError, type LocalBytes } from '../blobs.ts'
import { createTemporaryDirectory } from '../temporary-directories.ts'
import type { ObjectCalls } from './object-calls.ts'
import { readObject, readRange } from './read-object.ts'
import { removed } from './s3-errors.ts'
import { asTemporaryFault } from './temporary-fault.ts'

/** Objects up to this length are shared in memory, others in a temporary file. Bytes. */
const maxMemory = 1024 * 1024

/** Larger objects are not downloaded to this machine. Bytes. */
const maxShared = 256 * 1024 * 1024

/** Objects that are shared at the same time; others wait. */
const maxShares = 8

/** Downloads the first `length` bytes of an object of `size` bytes for other processes. Throws Fault `variant-unavailable` if they are too many, `overloaded` if there is no space for them, and `media-unknown` if the object was removed. */
export type ShareObject = (key: string, size: number, length?: number) => Promise<LocalBytes>

export function createShareObject(calls: Pick<ObjectCalls, 'get' | 'timeouts'>): ShareObject {
  let shared = 0
  const waiting: (() => void)[] = []

  async function turn(): Promise<void> {
    if (shared < maxShares) shared += 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
  }
  function endTurn(): void {
    const next = waiting.shift()
    if (next) next()
    else shared -= 1
  }

  async function inFile(key: string, length: number): Promise<{ path: string; directory: string }> {
    const directory = await createTemporaryDirectory().catch((error: unknown) => {
      throw asTemporaryFault(error)
    })
    const path = join(directory, 'picture')
    try {
      await pipeline(readObject(calls, key, 0, length - 1), createWriteStream(path, { mode: 0o600 }))
      return { path, directory }
    } catch (error) {
      await rm(directory, { recursive: true, force: true })
      throw asTemporaryFault(error)
    }
  }

  return async (key, size, length = size) => {
    const wanted = Math.min(size, length)
    const isWhole = wanted === size
    if (wanted > maxShared) throw new Fault('variant-unavailable', 'The picture is too large to be decoded.')
    await turn()
    let directory: string | null = null
    let isShared = true
    const release = async () => {
      if (!isShared) return
      isShared = false
      endTurn()
      if (directory !== null) await rm(directory, { recursive: true, force: true })
    }
    try {
      if (wanted > maxMemory) {
        const file = await inFile(key, wanted)
        directory = file.directory
        return { content: { type: 'file', path: file.path }, isWhole, release }
      }
      const bytes = Buffer.allocUnsafeSlow(wanted)
      await readRange(calls, key, 0, bytes)
      return { content: { type: 'bytes', bytes }, isWhole, release }
    } catch (error) {
      await release()
      throw error instanceof BlobRemovedError ? removed() : error
    }
  }
}
