/** Where Golden Retriever keeps what it needs to go on (its IndexedDBStore, version 4 of the database). */
const database = 'uppy-blobs'
const store = 'metadata'

/**
 * Whether a bucket has unfinished uploads from before the browser was closed. Looked up here, so that the uploader is
 * loaded for them and not otherwise; false where it cannot be told, and then they go on with the next file that is added.
 */
export async function hasLeftover(uploaderId: string): Promise<boolean> {
  try {
    const all = await indexedDB.databases()
    if (!all.some(({ name }) => name === database)) return false
    const kept: unknown = await read(uploaderId)
    return typeof kept === 'string' && isUnfinished(JSON.parse(kept))
  } catch {
    return false
  }
}

/** The record of an uploader, as the text of a JSON object; undefined when it has none. */
function read(uploaderId: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(database)
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = () => {
      const db = opening.result
      const reading = db.transaction(store).objectStore(store).get(uploaderId)
      reading.onerror = () => reject(reading.error)
      reading.onsuccess = () => resolve(reading.result?.metadata)
      // Else the uploader could not bring the database to a newer version.
      reading.transaction?.addEventListener('complete', () => db.close())
    }
  })
}

interface Kept {
  readonly files?: Readonly<Record<string, { readonly progress?: { readonly uploadComplete?: boolean } }>>
}

const isUnfinished = ({ files }: Kept): boolean =>
  Object.values(files ?? {}).some(({ progress }) => progress?.uploadComplete !== true)
