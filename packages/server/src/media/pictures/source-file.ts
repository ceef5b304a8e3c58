import { copyFile, open, rm, symlink, writeFile } from 'node:fs/promises'
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
  /** Returns a copy in which these bytes are changed. Throws Fault `overloaded`. */
  copyWith(changes: readonly Change[]): Promise<string>
  release(): Promise<void>
}

/** The formats that a program derives from the name of its output. */
const outputExtensions = ['jpg', 'png', 'y4m']

/** The file of local bytes; bytes in memory are written to a temporary file. Throws Fault `overloaded` if that fails. */
export async function sourceFileOf({ content, release }: LocalBytes): Promise<SourceFile> {
  let directory: string | null = null
  const remove = async () => {
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
    const copyWith = (changes: readonly Change[]) => copyChanged(path, `${output}-copy`, changes)
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
