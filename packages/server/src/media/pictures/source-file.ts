import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LocalBytes } from '../../blobs/blobs.ts'

/** A file that programs can read until it is released. */
export interface SourceFile {
  readonly path: string
  /** A link to the descriptor 3 of the process that opens it. */
  readonly output: string
  release(): Promise<void>
}

/** The file of local bytes; bytes in memory are written to a temporary file. */
export async function sourceFileOf({ content, release }: LocalBytes): Promise<SourceFile> {
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-picture-'))
  const remove = async () => {
    await rm(directory, { recursive: true, force: true })
    await release()
  }
  const output = join(directory, 'picture.jpg')
  try {
    await symlink('/proc/self/fd/3', output)
    if (content.type === 'file') return { path: content.path, output, release: remove }
    const path = join(directory, 'source')
    await writeFile(path, content.bytes, { mode: 0o600 })
    return { path, output, release: remove }
  } catch (error) {
    await remove()
    throw error
  }
}
