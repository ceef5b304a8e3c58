import type { LocalFile } from './local-files.ts'
import type { Batch } from './upload-state.ts'

/** A file to upload, with its position in the order of the command. */
export interface PlannedFile extends LocalFile {
  readonly index: number
  /** Changes with the file's path, size and time, and differs if a file is passed twice. */
  readonly fingerprint: string
}

/** The files of one request, or a large file, which takes several requests. */
export interface UploadUnit {
  readonly files: readonly PlannedFile[]
  /** A request of an earlier run without a response, which is repeated with its key; null for a new request. */
  readonly unanswered: Batch | null
}

/** Larger files are resumable uploads. Bytes. */
export const resumableAbove = 16_000_000

/** The maximum files and bytes of one form: it is read into memory, and sent again from its beginning after an interruption. */
const formFiles = 100
export const formBytes = 8_000_000

/** The units in the order in which their items are to be listed. */
export function planUnits(
  files: readonly PlannedFile[],
  unanswered: readonly Batch[],
): readonly UploadUnit[] {
  const byFingerprint = new Map(files.map((file) => [file.fingerprint, file]))
  const again = unanswered.map((batch) => ({
    files: batch.files.flatMap((fingerprint) => byFingerprint.get(fingerprint) ?? []),
    unanswered: batch,
  }))
  const repeated = new Set(again.flatMap(({ files }) => files))
  const units: { files: PlannedFile[]; unanswered: Batch | null }[] = []
  let bytes = 0
  for (const file of files) {
    if (repeated.has(file)) continue
    const last = units.at(-1)
    bytes += file.size
    if (last && last.files.length < formFiles && bytes <= formBytes) last.files.push(file)
    else {
      units.push({ files: [file], unanswered: null })
      bytes = file.size
    }
  }
  return [...again.filter(({ files }) => files.length > 0), ...units]
}
