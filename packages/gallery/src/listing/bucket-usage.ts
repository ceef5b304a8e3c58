import type { Bucket, Client } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Connection } from '../service/connection.ts'

/** What the bucket holds and may hold. */
export interface Usage {
  readonly bucket: ReadonlySignal<Bucket | null>
  refresh(): Promise<void>
}

export function createUsage(client: Client, connection: Connection): Usage {
  const bucket = signal<Bucket | null>(null)
  async function refresh(): Promise<void> {
    try {
      bucket.value = await connection.watch(() => client.bucket())
    } catch {
      // The header does without; the listing tells what is wrong.
    }
  }
  connection.onBack(() => void refresh())
  return { bucket, refresh }
}
