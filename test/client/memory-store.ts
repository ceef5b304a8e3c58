import type { ResumeStore } from '../../packages/client/src/index.ts'

/** A store in memory, readable by the test. */
export function memoryStore(): ResumeStore & { readonly kept: Map<string, string> } {
  const kept = new Map<string, string>()
  return {
    kept,
    get: (key) => kept.get(key),
    set: (key, upload) => void kept.set(key, upload),
    remove: (key) => void kept.delete(key),
  }
}
