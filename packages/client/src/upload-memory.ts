import type { ResumeStore } from './resume-store.ts'
import { sha256 } from './sha256.ts'

/** Where one upload is remembered. */
export interface UploadMemory {
  get(): Promise<string | null>
  set(id: string): Promise<void>
  forget(): Promise<void>
}

/** Read from the beginning, the middle and the end of a file. Bytes. */
const sample = 65_536

/**
 * Remembers an upload of this file to this URL. Beside what the caller tells files apart by, the key holds the size and
 * a checksum of samples: an upload that goes on with the bytes of another file would be the worst of all.
 */
export async function uploadMemory(
  store: ResumeStore,
  { url, fingerprint, blob }: { readonly url: string; readonly fingerprint: string; readonly blob: Blob },
): Promise<UploadMemory & { readonly key: string }> {
  const starts = [0, Math.floor(blob.size / 2), Math.max(0, blob.size - sample)]
  const samples = await Promise.all(starts.map((start) => blob.slice(start, start + sample).arrayBuffer()))
  const key = [url, blob.size, await sha256(await new Blob(samples).arrayBuffer()), fingerprint].join(' ')
  return {
    key,
    get: async () => (await store.get(key)) ?? null,
    set: async (id) => await store.set(key, id),
    forget: async () => await store.remove(key),
  }
}
