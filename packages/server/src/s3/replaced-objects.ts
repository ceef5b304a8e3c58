import { Fault } from '../core/faults.ts'
import { ObjectFault } from '../objects/object-faults.ts'
import type { StoredObject } from '../objects/object-operations.ts'
import { BlobRemovedError } from '../storage/blobs/blobs.ts'
import { S3Error } from './s3-errors.ts'

/** Each further attempt follows a replacement of the object. */
const maxAttempts = 20

/**
 * Uses the object that `find` returns. If its bytes are gone because the object was replaced, finds and uses the new one: who reads an object that is replaced
 * gets the old one or the new one (docs/interface.md OK2). Throws what both throw, and S3Error `SlowDown` if the object is replaced again and again.
 */
export async function unlessReplaced<Found extends { readonly object: StoredObject }, Result>(
  find: () => Promise<Found>,
  use: (found: Found) => Promise<Result>,
): Promise<Result> {
  let found = await find()
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    try {
      return await use(found)
    } catch (error) {
      if (!isGone(error)) throw error
      const current = await find()
      if (current.object.item.id === found.object.item.id) throw error
      found = current
    }
  }
  throw new S3Error('SlowDown')
}

const isGone = (error: unknown): boolean =>
  error instanceof BlobRemovedError ||
  (error instanceof Fault && error.code === 'media-unknown') ||
  // A change of the object itself requires the item that was found.
  (error instanceof ObjectFault && (error.code === 'key-unknown' || error.code === 'precondition-failed'))
