// Result codes of SQLite, https://sqlite.org/rescode.html; the low byte is the primary code.
const busy = 5
const outOfMemory = 7
const ioError = 10
const corrupt = 11
const full = 13
const cannotOpen = 14
const notADatabase = 26
const ioErrorShmSize = 4874

/** SQLite's extended result code; null for other errors. */
export function resultCode(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error)) return null
  return typeof error.errcode === 'number' ? error.errcode : null
}

function primaryCode(error: unknown): number | null {
  const code = resultCode(error)
  return code === null ? null : code & 0xff
}

export const isBusy = (error: unknown): boolean => primaryCode(error) === busy

/** The disk is full. */
export const isFull = (error: unknown): boolean =>
  resultCode(error) === ioErrorShmSize || primaryCode(error) === full

export const isIoError = (error: unknown): boolean => primaryCode(error) === ioError

export const isCorrupt = (error: unknown): boolean =>
  [corrupt, notADatabase].includes(primaryCode(error) ?? 0)

/** The process has no memory or file descriptor left. */
export const isShortage = (error: unknown): boolean =>
  [outOfMemory, cannotOpen].includes(primaryCode(error) ?? 0)

/** True for errors of the file or the machine: the whole transaction must be rolled back. */
export function endsTransaction(error: unknown): boolean {
  const code = primaryCode(error)
  return code !== null && [outOfMemory, ioError, corrupt, full, notADatabase].includes(code)
}
