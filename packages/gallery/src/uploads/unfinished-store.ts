import type { FormKey, UploadEntry } from './uploader/upload-list.ts'

/** The record of one unfinished upload. */
export interface Unfinished {
  readonly id: string
  readonly bucket: string
  /** The id of the page that uploads it. */
  readonly page: string
  readonly path: string
  readonly contentType: string
  /** Bytes. */
  readonly size: number
  /** Milliseconds since 1970. */
  readonly modified: number
  readonly uploadId: string | null
  readonly form: FormKey | null
  /** The `sampleHash` of the content; null if it was not computed. */
  readonly sample: number | null
  /** Null for a file above the limits of the store. */
  readonly file: File | null
}

/** Stores unfinished uploads in the browser (IndexedDB), so that a later visit continues them. */
export interface UnfinishedStore {
  /**
   * Adds or replaces the records of these entries, as uploads of this page, and removes the records `replaced` in the
   * same transaction. Resolves when it is committed: false if the storage failed.
   */
  put(entries: readonly UploadEntry[], replaced?: readonly string[]): Promise<boolean>
  /** Ignores errors of the storage. */
  remove(ids: readonly string[]): void
  /** Whether the content of every recorded file is stored, unless it was missing already: false if the limits of the store were exceeded. */
  hasContents(): boolean
  /** All records of the bucket, in the order in which they were added; none if the storage failed. */
  all(): Promise<readonly Unfinished[]>
}

const databaseName = 'mediabucket-uploads'
const storeName = 'unfinished'

/** Of one file, and of all files together. Bytes. */
const [maxFileSize, maxTotalSize] = [512 * 2 ** 20, 2 * 2 ** 30]

/** Whether a bucket has unfinished uploads of an earlier visit; false if the browser does not allow to read them. */
export async function hasUnfinishedUploads(bucket: string): Promise<boolean> {
  try {
    const all = await indexedDB.databases()
    if (!all.some(({ name }) => name === databaseName)) return false
    return (await openUnfinishedStore(bucket, '').all()).length > 0
  } catch {
    return false
  }
}

export function openUnfinishedStore(bucket: string, page: string): UnfinishedStore {
  // Opened early, because a closing page cannot wait for it.
  const opening = openDatabase()
  opening.catch(() => undefined)
  let storedBytes = 0
  const storedSizes = new Map<string, number>()
  /** The ids of records without the content of their files. */
  const withoutContent = new Set<string>()
  // Transactions run one after another, so that a record is not removed before it is written.
  let last: Promise<unknown> = Promise.resolve()

  function transact<T>(
    mode: IDBTransactionMode,
    work: (store: IDBObjectStore) => IDBRequest<T> | null,
  ): Promise<T | null> {
    const done = last.then(async () => {
      const transaction = (await opening).transaction(storeName, mode)
      return await new Promise<T | null>((resolve, reject) => {
        const request = work(transaction.objectStore(storeName))
        // Do not wait for the automatic commit: the page may be closing.
        if (mode === 'readwrite') transaction.commit()
        transaction.oncomplete = () => resolve(request?.result ?? null)
        transaction.onerror = transaction.onabort = () => reject(transaction.error)
      })
    })
    last = done.catch(() => undefined)
    return done
  }

  function recordOf(entry: UploadEntry): Unfinished {
    const { id, path, contentType, size, modified, uploadId, form, sample, file } = entry
    const added = size - (storedSizes.get(id) ?? 0)
    const fits = file !== null && size <= maxFileSize && storedBytes + added <= maxTotalSize
    if (fits) {
      storedBytes += added
      storedSizes.set(id, size)
      withoutContent.delete(id)
    } else if (file !== null) withoutContent.add(id)
    const stored = fits ? file : null
    return { id, bucket, page, path, contentType, size, modified, uploadId, form, sample, file: stored }
  }

  return {
    put(entries, replaced = []) {
      const records = entries.map(recordOf)
      return transact('readwrite', (store) => {
        for (const record of records) store.put(record)
        for (const id of replaced) store.delete(id)
        return null
      }).then(
        () => true,
        () => false,
      )
    },
    remove(ids) {
      if (ids.length === 0) return
      for (const id of ids) {
        storedBytes -= storedSizes.get(id) ?? 0
        storedSizes.delete(id)
        withoutContent.delete(id)
      }
      void transact('readwrite', (store) => {
        for (const id of ids) store.delete(id)
        return null
      }).catch(() => null)
    },
    hasContents: () => withoutContent.size === 0,
    async all() {
      const records = await transact<Unfinished[]>('readonly', (store) => store.getAll()).catch(() => null)
      return (records ?? []).filter((record) => record.bucket === bucket)
    },
  }
}

function openDatabase(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(databaseName, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(storeName, { keyPath: 'id' })
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}
