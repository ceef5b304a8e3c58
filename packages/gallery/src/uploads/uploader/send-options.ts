import type { Client } from '@mediabucket/client'
import type { UploadEntry } from '../upload-entry.ts'

export interface SendOptions {
  readonly client: Client
  readonly token: string
  /** Where resumable uploads begin, on the page's own origin. */
  readonly endpoint: string
  loadResumable(): Promise<typeof import('./resumable.ts')>
  onChange(): void
  onStored(entries: readonly UploadEntry[]): void
  /** What a later visit must know of these entries has changed. */
  onSending(entries: readonly UploadEntry[]): void
  /** The service did not respond. */
  onUnreachable(): void
  /** The service refused with this status. */
  onRefused(status: number): void
}
