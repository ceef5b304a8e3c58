import type { Files } from './files.ts'

/** Receives the duration of each successful sync in seconds. */
export type OnSync = (seconds: number) => void

export const timeSyncs = (files: Files, onSync: OnSync): Files => ({
  ...files,
  async create(path) {
    const file = await files.create(path)
    return { ...file, sync: timed(file.sync, onSync) }
  },
  openDirectory(path) {
    const directory = files.openDirectory(path)
    return { ...directory, sync: timed(directory.sync, onSync) }
  },
  async open(...args) {
    const file = await files.open(...args)
    file.sync = timed(file.sync.bind(file), onSync)
    return file
  },
})

const timed = (sync: () => Promise<void>, onSync: OnSync) => async () => {
  const startedAt = performance.now()
  await sync()
  onSync((performance.now() - startedAt) / 1000)
}
