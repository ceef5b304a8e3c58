import type { NewFile, WriterFiles } from './files.ts'

/** A new file at `path` as `fill` makes it, synced when it resolves; where anything fails, no file is left. */
export async function createSyncedFile<Filled>(
  files: Pick<WriterFiles, 'create' | 'unlink'>,
  path: string,
  fill: (file: NewFile) => Promise<Filled>,
): Promise<Filled> {
  const file = await files.create(path)
  try {
    const filled = await fill(file)
    // Never tried again: after a sync that failed the kernel may have dropped the very pages it could not write.
    await file.sync()
    await file.close()
    return filled
  } catch (error) {
    await file.close().catch(() => undefined)
    await files.unlink(path).catch(() => undefined)
    throw error
  }
}
