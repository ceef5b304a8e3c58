import { errorCode } from './error-code.ts'
import { Fault } from './fault.ts'

/** Why the disk or the catalog failed. */
export const storageCauses = [
  'full',
  'io',
  'read-only',
  'corrupt',
  'bytes-missing',
  'permission',
  'open-files',
] as const

export type StorageCause = (typeof storageCauses)[number]

/** Error codes of the operating system. */
const systemCodes: Readonly<Record<string, StorageCause>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EIO: 'io',
  EROFS: 'read-only',
  EACCES: 'permission',
  EPERM: 'permission',
  EMFILE: 'open-files',
  ENFILE: 'open-files',
}

/** SQLite's primary result codes (https://sqlite.org/rescode.html). */
const sqliteCodes: Readonly<Record<number, StorageCause>> = {
  3: 'permission',
  8: 'read-only',
  10: 'io',
  11: 'corrupt',
  13: 'full',
  14: 'io',
  26: 'corrupt',
}

/** The storage failure in an error or in its chain of causes; null if there is none. */
export function storageCauseOf(error: unknown): StorageCause | null {
  if (!(error instanceof Error)) return null
  if (error instanceof Fault && error.code === 'bytes-missing') return 'bytes-missing'
  if (error instanceof Fault && error.code === 'storage-full') return 'full'
  const system = systemCodes[errorCode(error) ?? '']
  const sqlite =
    'errcode' in error && typeof error.errcode === 'number' ? sqliteCodes[error.errcode & 0xff] : undefined
  return system ?? sqlite ?? storageCauseOf(error.cause)
}
