import { sha256Base64 } from './base64.ts'
import type { ResumeStore } from './resume-store.ts'

/** The entry of one upload in a resume store. */
export interface ResumeEntry {
  get(): Promise<string | null>
  set(id: string): Promise<void>
  remove(): Promise<void>
}

/** The size of each of the three samples of a file. Bytes. */
const sampleSize = 65_536

/**
 * The entry of the upload of this file to this URL. In addition to the fingerprint, its key contains the size and a hash of
 * samples, so that an upload never continues with the bytes of another file.
 */
export async function createResumeEntry(
  store: ResumeStore,
  { url, fingerprint, blob }: { readonly url: string; readonly fingerprint: string; readonly blob: Blob },
): Promise<ResumeEntry & { readonly key: string }> {
  const starts = [0, Math.floor(blob.size / 2), Math.max(0, blob.size - sampleSize)]
  const samples = await Promise.all(
    starts.map((start) => blob.slice(start, start + sampleSize).arrayBuffer()),
  )
  const key = [url, blob.size, await sha256Base64(await new Blob(samples).arrayBuffer()), fingerprint].join(
    ' ',
  )
  return {
    key,
    get: async () => (await store.get(key)) ?? null,
    set: async (id) => await store.set(key, id),
    remove: async () => await store.remove(key),
  }
}
