import type { Bucket, Client } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Connection } from '../service/connection.ts'

/** The size and the limits of the bucket. */
export interface BucketUsage {
  /** Null until it is loaded. */
  readonly bucket: ReadonlySignal<Bucket | null>
  refresh(): Promise<void>
}

export function createBucketUsage(client: Client, connection: Connection): BucketUsage {
  const bucket = signal<Bucket | null>(null)
  async function refresh(): Promise<void> {
    try {
      bucket.value = await connection.watch(() => client.bucket())
    } catch {
      // The header is shown without it; the listing shows errors.
    }
  }
  connection.onRestored(() => void refresh())
  return { bucket, refresh }
}
