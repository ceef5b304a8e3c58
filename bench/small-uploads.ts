import { join, resolve } from 'node:path'
import { type Load, type Measure, measure, runPinned, type Subject } from './subject.ts'
import { yardstickThreads } from './yardsticks/threads.ts'

const local = (path: string) => resolve(import.meta.dirname, path)

/** Size of small uploads. Bytes. */
export const small = 10_000
const tiny = 2_000

/** The sizes whose uploads are measured. Files of the second one are also sent in forms. */
export const smallSizes = [
  { name: '10 kB', bytes: small, formFiles: 0 },
  { name: '2 kB', bytes: tiny, formFiles: 100 },
] as const

/** Uploads of one raw file after the other on each connection. */
export const uploading = (connections: number, size: number, token: string): Omit<Load, 'seconds'> => ({
  connections,
  script: [local('lua/post-file.lua'), token, String(size)],
})

/** The cases of durable uploads of a size: raw files against the bare loop of files, and forms. `scratch` is a directory. */
export function smallUploads(
  subject: Subject,
  { name, bytes, formFiles }: (typeof smallSizes)[number],
  { token, scratch, seconds }: { readonly token: string; readonly scratch: string; readonly seconds: number },
) {
  let loops = 0
  const rawFiles = [
    {
      id: `${name} in the loop`,
      run: () => durableLoop(join(scratch, `loop-${bytes}-${loops++}`), bytes, seconds),
    },
    {
      id: `${name} uploads`,
      run: async () => {
        const measured = await measure(subject, '/', { ...uploading(32, bytes, token), seconds })
        return { ...measured, bytesPerSecond: measured.perSecond * bytes }
      },
    },
  ]
  if (formFiles === 0) return rawFiles
  const script = [local('lua/post-form.lua'), token, String(formFiles), String(bytes)]
  const forms = {
    id: `${name}, ${formFiles} files in a form`,
    run: async () => {
      const form = await measure(subject, '/', { connections: 8, script, seconds })
      const perSecond = form.perSecond * formFiles
      const cpuPerRequest = form.cpuPerRequest / formFiles
      return { ...form, perSecond, cpuPerRequest, bytesPerSecond: perSecond * bytes }
    },
  }
  return [...rawFiles, forms]
}

async function durableLoop(directory: string, size: number, seconds: number): Promise<Measure> {
  const command = ['node', local('yardsticks/durable-loop.ts'), directory, '32', String(size)]
  const printed = await runPinned('subject', [...command, String(seconds)], yardstickThreads)
  const result: { count: number; seconds: number; cpuSeconds: number; p50: number; p99: number } =
    JSON.parse(printed)
  const perSecond = result.count / result.seconds
  const { p50, p99 } = result
  return {
    perSecond,
    bytesPerSecond: perSecond * size,
    cpuPerRequest: result.cpuSeconds / result.count,
    p50,
    p99,
  }
}
