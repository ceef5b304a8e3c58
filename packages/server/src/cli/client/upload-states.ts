import { readFile, rm, writeFile } from 'node:fs/promises'
import type { ResumeStore } from '@mediabucket/client'
import { nullIfMissing, type StateFiles } from './state-files.ts'

/** Persistent state of resumable uploads: the upload's id for each key. */
export interface UploadStates extends ResumeStore {
  /** True if a later run can continue this one. */
  readonly begun: () => boolean
  /** To be called at the end of the run: removes the finished uploads, so that the same files can be uploaded again. */
  readonly settle: () => Promise<void>
}

export function uploadStates(files: StateFiles): UploadStates {
  const stored = new Set<string>()
  const finished = new Set<string>()
  return {
    begun: () => stored.size > 0,

    async get(key) {
      if (finished.has(key)) return null
      const id = await files.use(key, (path) => readFile(path, 'utf8').catch(nullIfMissing))
      if (id) stored.add(key)
      return id?.trim() || null
    },

    async set(key, upload) {
      await files.use(key, (path) => writeFile(path, `${upload}\n`, { mode: 0o600 }))
      stored.add(key)
      finished.delete(key)
    },

    remove(key) {
      finished.add(key)
    },

    async settle() {
      for (const key of finished) await files.use(key, (path) => rm(path, { force: true }))
    },
  }
}
