import type { Bucket, Client } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Connection } from './connection.ts'

/** The size and the limits of the bucket. */
export interface BucketUsage {
  /** Null until it is loaded. */
  readonly bucket: ReadonlySignal<Bucket | null>
  refresh(): Promise<void>
  /** Whether deleted items are moved to the trash; false if that is unknown. Never rejects. */
  hasTrash(): Promise<boolean>
}

export function createBucketUsage(client: Client, connection: Connection): BucketUsage {
  const bucket = signal<Bucket | null>(null)
  async function refresh(): Promise<boolean> {
    try {
      bucket.value = await connection.watch(() => client.bucket())
      return true
    } catch {
      // The header is shown without it; the listing shows errors.
      return false
    }
  }
  connection.onRestored(() => void refresh())
  return {
    bucket,
    async refresh() {
      await refresh()
    },
    hasTrash: async () => (await refresh()) && (bucket.value?.trash_days ?? 0) > 0,
  }
}
