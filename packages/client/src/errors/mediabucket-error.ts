/**
 * The class of all errors of this client, with two exceptions: a wrong argument is a `TypeError`, and an aborted call
 * rejects with the reason of its signal.
 */
export class MediabucketError extends Error {
  override name = 'MediabucketError'
}
