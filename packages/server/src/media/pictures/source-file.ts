import { copyFile, open, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { LocalBytes } from '../../blobs/blobs.ts'
import { createTemporaryDirectory } from '../../blobs/temporary-directories.ts'
import { Fault } from '../../core/fault.ts'

/** A byte of a file. */
interface Change {
  readonly position: number
  readonly value: number
}

/** A file that programs can read until it is released. */
export interface SourceFile {
  readonly path: string
  /** With `.jpg`, `.png` or `.y4m`, a link to the descriptor 3 of the process that opens it. */
  readonly output: string
  /** Returns a copy in which these bytes are changed; at most one. Throws Fault `variant-unavailable` if it would be too large, and `overloaded`. */
  copyWith(changes: readonly Change[]): Promise<string>
  release(): Promise<void>
}

/** Larger files are not copied. The pictures of a burst have some MB each. Bytes. */
const maxCopy = 64 * 1024 * 1024

/** Copies at a time. */
const maxCopies = 8
let copies = 0

/** The formats that a program derives from the name of its output. */
const outputExtensions = ['jpg', 'png', 'y4m']

/** The file of local bytes; bytes in memory are written to a temporary file. Throws Fault `overloaded` if that fails. */
export async function sourceFileOf({ content, release }: LocalBytes): Promise<SourceFile> {
  let directory: string | null = null
  let isCopied = false
  const remove = async () => {
    if (isCopied) copies -= 1
    try {
      if (directory !== null) await rm(directory, { recursive: true, force: true })
    } finally {
      await release()
    }
  }
  try {
    directory = await createTemporaryDirectory()
    const output = join(directory, 'picture')
    for (const extension of outputExtensions) await symlink('/proc/self/fd/3', `${output}.${extension}`)
    const path = content.type === 'file' ? content.path : join(directory, 'source')
    if (content.type === 'bytes') await writeFile(path, content.bytes, { mode: 0o600 })
    const copyWith = async (changes: readonly Change[]) => {
      if ((await stat(path)).size > maxCopy)
        throw new Fault(
          'variant-unavailable',
          'The file has several pictures and is too large to be decoded.',
        )
      if (copies >= maxCopies) throw cannotWrite(new Error('other copies are in use'))
      copies += 1
      isCopied = true
      return copyChanged(path, `${output}-copy`, changes)
    }
    return { path, output, copyWith, release: remove }
  } catch (error) {
    await remove()
    throw cannotWrite(error)
  }
}

async function copyChanged(from: string, to: string, changes: readonly Change[]): Promise<string> {
  try {
    await copyFile(from, to)
    const file = await open(to, 'r+')
    try {
      for (const { position, value } of changes) await file.write(Uint8Array.of(value), 0, 1, position)
    } finally {
      await file.close()
    }
    return to
  } catch (error) {
    throw cannotWrite(error)
  }
}

const cannotWrite = (cause: unknown) =>
  new Fault('overloaded', 'The service cannot write a temporary file.', { cause })
