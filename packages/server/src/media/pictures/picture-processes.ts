import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import { findPictureSandbox, type PictureSandbox } from './picture-sandbox.ts'

/** Returns a function that starts a process of picture-worker.ts in the sandbox, and returns null if none can be started. */
export function createPictureProcesses(limits: {
  /** Bytes for one process. */
  readonly memory: number
  /** 0 to 19. */
  readonly niceness: number
  /** Whether the processes may start programs, which inherit their restrictions. */
  readonly startPrograms?: boolean
}): () => ChildProcess | null {
  // The extension is .ts in the sources and .js in the published build.
  const file = new URL(`./picture-worker${extname(import.meta.url)}`, import.meta.url)
  let sandbox: PictureSandbox | null = null

  return () => {
    try {
      sandbox ??= findPictureSandbox()
      return fork(file, [String(limits.niceness), String(limits.memory)], {
        execPath: sandbox.execPath,
        execArgv: [
          ...sandbox.execArgv,
          // The worker cannot check its memory during synchronous work. Half, since buffers and the decoder are not in the heap.
          `--max-old-space-size=${Math.ceil(limits.memory / 2 ** 21)}`,
          ...(limits.startPrograms ? ['--allow-child-process'] : []),
        ],
        env: sandbox.env,
        serialization: 'advanced',
        // The decoder writes to standard error, which is the service's log.
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      })
    } catch {
      return null
    }
  }
}
