import type { Files, WriterFiles } from './files.ts'

/** Called with the seconds of each sync that succeeds. */
export type OnSync = (seconds: number) => void

/** The same calls, whose syncs are timed. */
export const timeWriterSyncs = (files: WriterFiles, onSync: OnSync): WriterFiles => ({
  ...files,
  async create(path) {
    const file = await files.create(path)
    return { ...file, sync: timed(file.sync, onSync) }
  },
  openDirectory(path) {
    const directory = files.openDirectory(path)
    return { ...directory, sync: timed(directory.sync, onSync) }
  },
})

export const timeSyncs = (files: Files, onSync: OnSync): Files => ({
  ...timeWriterSyncs(files, onSync),
  async open(...named) {
    const file = await files.open(...named)
    file.sync = timed(file.sync.bind(file), onSync)
    return file
  },
})

const timed = (sync: () => Promise<void>, onSync: OnSync) => async () => {
  const begun = performance.now()
  await sync()
  onSync((performance.now() - begun) / 1000)
}
