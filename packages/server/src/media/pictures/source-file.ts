import { rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { LocalBytes } from '../../blobs/blobs.ts'
import { createTemporaryDirectory } from '../../blobs/temporary-directories.ts'
import { Fault } from '../../core/fault.ts'

/** A file that programs can read until it is released. */
export interface SourceFile {
  readonly path: string
  /** A link to the descriptor 3 of the process that opens it. */
  readonly output: string
  release(): Promise<void>
}

/**
 * The file of local bytes; bytes in memory are written to a temporary file. The name of the output has the extension of the format that a
 * program writes. Throws Fault `overloaded` if that fails.
 */
export async function sourceFileOf(
  { content, release }: LocalBytes,
  outputName = 'picture.jpg',
): Promise<SourceFile> {
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
    const output = join(directory, outputName)
    await symlink('/proc/self/fd/3', output)
    if (content.type === 'file') return { path: content.path, output, release: remove }
    const path = join(directory, 'source')
    await writeFile(path, content.bytes, { mode: 0o600 })
    return { path, output, release: remove }
  } catch (error) {
    await remove()
    throw new Fault('overloaded', 'The service cannot write a temporary file.', { cause: error })
  }
}
