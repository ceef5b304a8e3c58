/**
 * What every error of this client is, save two: a wrong argument is a `TypeError`, and an aborted call rejects with
 * the reason of its signal.
 */
export class MediabucketError extends Error {
  override name = 'MediabucketError'
}
