import type { ChosenFile } from '../files/chosen-files.ts'
import type { UploadState } from '../uploads-view.ts'

export interface FormKey {
  /** The Idempotency-Key of the request. */
  readonly key: string
  /** The number of files in the request. */
  readonly count: number
}

/** One file in the list of uploads. Only `UploadList` changes its state. */
export interface UploadEntry {
  readonly id: string
  readonly path: string
  readonly name: string
  contentType: string
  /** Bytes. */
  size: number
  /** Milliseconds since 1970. */
  modified: number
  /** Null if it could not be read, or must be chosen again. */
  file: File | null
  reread: ChosenFile['reread']
  state: UploadState
  /** Bytes. */
  sent: number
  /** Why it failed; empty otherwise. */
  reason: string
  /** The URL of its resumable upload; null if there is none. */
  uploadUrl: string | null
  /** The form that it was last sent in; null if there is none. */
  form: FormKey | null
  /** The id of the stored item; null before it is stored. */
  itemId: string | null
  /** The `sampleHash` of the content that an earlier visit sent; null if any content may continue it. */
  sample: number | null
  /** Whether the browser stores it for a later visit. */
  isSaved: boolean
  readonly addedAt: number
}

export function newEntry({ file, path, reread }: ChosenFile, id: string): UploadEntry {
  return {
    id,
    path,
    name: path.slice(path.lastIndexOf('/') + 1),
    contentType: file?.type ?? '',
    size: file?.size ?? 0,
    modified: file?.lastModified ?? 0,
    file,
    reread,
    state: 'waiting',
    sent: 0,
    reason: '',
    uploadUrl: null,
    form: null,
    itemId: null,
    sample: null,
    isSaved: false,
    addedAt: Date.now(),
  }
}

/** Identifies a file by path, size and time. Files of one name in different folders are different files. */
export const fingerprintOf = ({
  path,
  size,
  modified,
}: Pick<UploadEntry, 'path' | 'size' | 'modified'>): string => `${size} ${modified} ${path}`
