import { extname } from 'node:path'
import type { MediaId } from '../../core/media-id.ts'
import { startBatchThread } from '../../threads/start-batch-thread.ts'
import type { FileToCommit } from './file-writer-thread.ts'
import type { OnSync } from './sync-timing.ts'

/** The thread that writes and renames the files of the server. */
export interface FileWriterThread {
  /**
   * Commits the bytes of a small file, or a synced file at this path, under the id; durable when it resolves. The thread
   * takes over the bytes. Throws Fault `storage-full`; the bytes of a small file are then removed, and a synced file stays
   * at its path or is removed.
   */
  commit(id: MediaId, content: Uint8Array<ArrayBuffer> | string): Promise<void>
  /** Finishes the pending files, then ends the thread. */
  close(): Promise<void>
}

/** `onFailure` is called once when the thread ends before `close`; `onSync` receives the seconds of each sync. */
export async function startFileWriterThread(
  directory: string,
  onFailure: (error: Error) => void,
  onSync: OnSync,
): Promise<FileWriterThread> {
  // The extension is .ts in the sources and .js in the published build.
  const file = new URL(`./file-writer-thread${extname(import.meta.url)}`, import.meta.url)
  const thread = await startBatchThread<FileToCommit, undefined, readonly number[]>({
    file,
    name: 'file-writer',
    workerData: { directory },
    onReport: (syncs) => syncs.forEach(onSync),
    onFailure,
  })
  return {
    commit: (id, content) =>
      new Promise((resolve, reject) =>
        thread.send(
          { id, content },
          { resolve, reject },
          typeof content === 'string' ? [] : [content.buffer],
        ),
      ),
    close: thread.close,
  }
}
