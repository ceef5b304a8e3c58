import type { Files, NewFile } from './files.ts'

/** Creates a file, calls `write`, and syncs it. Returns what `write` returned. Removes the file if anything fails. */
export async function createSyncedFile<Result>(
  files: Pick<Files, 'create' | 'unlink'>,
  path: string,
  write: (file: NewFile) => Promise<Result>,
): Promise<Result> {
  const file = await files.create(path)
  try {
    const result = await write(file)
    // A failed sync is not retried: the kernel may have dropped the pages that it could not write.
    await file.sync()
    await file.close()
    return result
  } catch (error) {
    await file.close().catch(() => undefined)
    await files.unlink(path).catch(() => undefined)
    throw error
  }
}
