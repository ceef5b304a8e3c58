import { AnswerError, type Client, type Media } from '@mediabucket/client'
import { isUnreachable } from '../../service/connection.ts'
import { Refusal } from './refusal.ts'
import type { UploadEntry } from './upload-list.ts'

/** A file whose bytes are in memory. */
export interface ReadFile {
  readonly entry: UploadEntry
  readonly bytes: Uint8Array
}

/** Larger files are resumable uploads. Bytes. */
export const maxFormFileSize = 1_048_576

/** Of one form. The server accepts 1,000 files by default. */
const [maxFiles, maxBytes] = [100, 4_194_304]

/** The next files for one form: consecutive ones, so that the listing keeps their order. */
export function nextForm(waiting: Iterable<UploadEntry>): UploadEntry[] {
  const form: UploadEntry[] = []
  let bytes = 0
  for (const entry of waiting) {
    bytes += entry.size
    // Files that a closed page sent with one key stay together, because the server may have stored them.
    if (form[0] && entry.form?.key !== form[0].form?.key) break
    if (form.length === maxFiles || entry.size > maxFormFileSize || bytes > maxBytes) break
    form.push(entry)
  }
  return form
}

/** The Idempotency-Key with which exactly these files were sent before; null if they were not. */
export function formerKey(entries: readonly UploadEntry[]): string | null {
  const form = entries[0]?.form ?? null
  const same = form?.count === entries.length && entries.every((entry) => entry.form?.key === form.key)
  return same ? form.key : null
}

/** Sends a form once. Rejects with a `Refusal`, or with the client's error if the server did not respond. */
export async function sendForm(
  client: Client,
  files: readonly ReadFile[],
  options: { idempotencyKey: string; signal: AbortSignal; onProgress: (share: number) => void },
): Promise<readonly Media[]> {
  const { idempotencyKey, signal, onProgress } = options
  try {
    return await client.uploadAll(
      files.map(({ entry, bytes }) => ({
        source: bytes,
        filename: entry.name,
        contentType: entry.contentType,
      })),
      { idempotencyKey, signal, onProgress: ({ sent, total }) => onProgress(total ? sent / total : 0) },
    )
  } catch (error) {
    if (!(error instanceof AnswerError) || isUnreachable(error)) throw error
    throw new Refusal(error.status, error.body, error.retryAfter)
  }
}
