/** The directory of the bytes is not the one that belongs to the catalog; the message is one line with the cure. */
export class BlobsMismatchError extends Error {
  override readonly name = 'BlobsMismatchError'
}
