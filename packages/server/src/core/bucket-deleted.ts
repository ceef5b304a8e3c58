import { Fault } from './fault.ts'

/** For a request that was under way when its bucket was deleted, and its token with it. */
export const bucketDeleted = (): Fault =>
  new Fault('token-revoked', 'The bucket of this token has been deleted.')
