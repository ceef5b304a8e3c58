/** The data directory cannot be used; the message is one line with the path and what to do. */
export class DataDirectoryError extends Error {
  override readonly name = 'DataDirectoryError'
}
