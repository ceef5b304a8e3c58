import type { Client } from '@mediabucket/client'
import type { TokenSource } from '../../session/stored-session.ts'
import type { UploadEntry } from './upload-list.ts'

export interface SendOptions {
  readonly client: Client
  readonly token: TokenSource
  /** The URL that creates resumable uploads, on the page's own origin. */
  readonly endpoint: string
  loadResumable(): Promise<typeof import('./resumable.ts')>
  onChange(): void
  onStored(entries: readonly UploadEntry[]): void
  /** The upload URL or the form of these entries changed, which a later visit needs. */
  onSending(entries: readonly UploadEntry[]): void
  /** The server did not respond. */
  onUnreachable(): void
  /** The server refused an upload with this status. */
  onRefused(status: number): void
}
