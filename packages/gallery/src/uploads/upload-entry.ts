import type { ChosenFile } from './files/chosen-files.ts'
import type { UploadState } from './uploads-view.ts'

export interface FormKey {
  readonly key: string
  readonly count: number
}

/** One file that is being uploaded. Its state is changed by the list alone. */
export interface UploadEntry {
  readonly id: string
  readonly path: string
  readonly name: string
  contentType: string
  /** Bytes. */
  size: number
  /** Milliseconds since 1970. */
  modified: number
  /** Null where it could not be read, or must be chosen again. */
  file: File | null
  reread: ChosenFile['reread']
  state: UploadState
  /** Bytes. */
  sent: number
  reason: string
  /** The resumable upload that the service has of it. */
  uploadUrl: string | null
  /** The form that it was last sent in: its Idempotency-Key, and how many files it had. */
  form: FormKey | null
  /** The URL of the stored item, or its id; null before. */
  item: { readonly id: string; readonly url: string | null } | null
  /** Of the content that an earlier visit sent; null where any content will do. */
  sample: number | null
  /** Whether the browser keeps it for a later visit. */
  kept: boolean
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
    item: null,
    sample: null,
    kept: false,
    addedAt: Date.now(),
  }
}

/** Tells files apart. Two files of one name in different folders are two files. */
export const fingerprintOf = ({
  path,
  size,
  modified,
}: Pick<UploadEntry, 'path' | 'size' | 'modified'>): string => `${size} ${modified} ${path}`
