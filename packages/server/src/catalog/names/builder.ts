import { extname } from 'node:path'
import { startBatchThread } from '../../threads/start-batch-thread.ts'
import { startOnDemand } from '../../threads/start-on-demand.ts'
import type { NamedRow, NewSegment, Segment } from './segments.ts'

/** The rows of a block, or the segments to be merged. */
export type BuilderInput =
  | { readonly first: number; readonly rows: readonly NamedRow[] }
  | {
      readonly parts: readonly {
        readonly segment: Segment
        readonly chunks: readonly Uint8Array<ArrayBuffer>[]
      }[]
    }

interface NameBuilder {
  build(input: BuilderInput): Promise<NewSegment>
  close(): Promise<void>
}

/** Builds segments on a thread of its own. */
export function createNameBuilder(): NameBuilder {
  const thread = startOnDemand((onFailure) =>
    startBatchThread<BuilderInput, NewSegment, null>({
      // The extension is .ts in the sources and .js in the published build.
      file: new URL(`./builder-thread${extname(import.meta.url)}`, import.meta.url),
      name: 'name-builder',
      workerData: null,
      onReport: () => undefined,
      onFailure,
    }),
  )
  return {
    build: (input) => new Promise((resolve, reject) => thread.send(input, { resolve, reject })),
    close: thread.close,
  }
}
