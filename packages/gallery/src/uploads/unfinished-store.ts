import type { FormKey, UploadEntry } from './upload-entry.ts'

/** The record of one unfinished upload. */
export interface Unfinished {
  readonly id: string
  /** One bucket never shows the files of another. */
  readonly bucket: string
  /** The page that uploads it. */
  readonly page: string
  readonly path: string
  readonly contentType: string
  readonly size: number
  readonly modified: number
  readonly uploadUrl: string | null
  readonly form: FormKey | null
  /** Of the content (`sampleHash`); null where that was not read. */
  readonly sample: number | null
  /** Null for a file above the limits. */
  readonly file: File | null
}

/** Keeps unfinished uploads in the browser, so that they continue after it was closed. Where it cannot, nothing is kept. */
export interface UnfinishedStore {
  put(entries: readonly UploadEntry[]): void
  remove(ids: readonly string[]): void
  /** All of this bucket, in the order in which they were added. */
  all(): Promise<readonly Unfinished[]>
  /** Records of another page become this page's own. */
  readonly page: string
}

export const databaseName = 'mediabucket-uploads'
const name = 'unfinished'

/** What is kept of files. Bytes. */
const [mostOfOne, mostOfAll] = [512 * 2 ** 20, 2 * 2 ** 30]

export function openUnfinishedStore(bucket: string, page: string): UnfinishedStore {
  // At once, for nothing can wait for it while the page closes.
  const opening = open()
  opening.catch(() => undefined)
  let bytes = 0
  const sizes = new Map<string, number>()
  // One after another, so that a removal never overtakes the record that it removes.
  let last: Promise<unknown> = Promise.resolve()

  function use<T>(
    mode: IDBTransactionMode,
    work: (store: IDBObjectStore) => IDBRequest<T> | null,
  ): Promise<T | null> {
    const done = last.then(async () => {
      const transaction = (await opening).transaction(name, mode)
      return await new Promise<T | null>((resolve, reject) => {
        const request = work(transaction.objectStore(name))
        // Without waiting for the event loop: the page may be closing.
        if (mode === 'readwrite') transaction.commit()
        transaction.oncomplete = () => resolve(request?.result ?? null)
        transaction.onerror = transaction.onabort = () => reject(transaction.error)
      })
    })
    const quiet = done.catch(() => null)
    last = quiet
    return quiet
  }

  function record(entry: UploadEntry): Unfinished {
    const { id, path, contentType, size, modified, uploadUrl, form, file } = entry
    const fits = file !== null && size <= mostOfOne && bytes + size - (sizes.get(id) ?? 0) <= mostOfAll
    if (fits) {
      bytes += size - (sizes.get(id) ?? 0)
      sizes.set(id, size)
    }
    const record = { id, bucket, page, path, contentType, size, modified, uploadUrl, form }
    return { ...record, sample: entry.sample, file: fits ? file : null }
  }

  return {
    page,
    put(entries) {
      const records = entries.map(record)
      void use('readwrite', (store) => {
        for (const one of records) store.put(one)
        return null
      })
    },
    remove(ids) {
      if (ids.length === 0) return
      for (const id of ids) {
        bytes -= sizes.get(id) ?? 0
        sizes.delete(id)
      }
      void use('readwrite', (store) => {
        for (const id of ids) store.delete(id)
        return null
      })
    },
    async all() {
      const records = await use<Unfinished[]>('readonly', (store) => store.getAll())
      return (records ?? []).filter((one) => one.bucket === bucket)
    },
  }
}

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(databaseName, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(name, { keyPath: 'id' })
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}
