import { ExplainedError } from '../../core/explained-error.ts'
import type { Files } from './files.ts'

/** What is at a path; `other` is anything that the store does not create, such as a symbolic link. */
export type EntryType = 'nothing' | 'directory' | 'file' | 'other'

/** Does not follow links. */
export function entryTypeAt(files: Pick<Files, 'lstat'>, path: string): EntryType {
  const status = files.lstat(path)
  if (status === null) return 'nothing'
  if (status.isDirectory()) return 'directory'
  return status.isFile() ? 'file' : 'other'
}

/** An entry in the store's directories that the store did not create. It is never read or followed (docs/interface.md B8). */
export class ForeignEntry extends ExplainedError {
  override readonly name = 'ForeignEntry'
}
