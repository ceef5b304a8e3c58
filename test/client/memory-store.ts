import type { ResumeStore } from '../../packages/client/src/index.ts'

/** A store that lives as long as the test, and can be looked into. */
export function memoryStore(): ResumeStore & { readonly kept: Map<string, string> } {
  const kept = new Map<string, string>()
  return {
    kept,
    get: (key) => kept.get(key),
    set: (key, upload) => void kept.set(key, upload),
    remove: (key) => void kept.delete(key),
  }
}
