/**
 * Stores the ids of unfinished uploads, so that another process or a later visit to a page can resume them. A key
 * contains the file's name and the service's URL, a value contains the upload's id; neither contains the token. If a
 * store throws, the upload rejects with that error.
 */
export interface ResumeStore {
  /** The value that was set last; null or undefined if there is none. */
  get(key: string): Promise<string | null | undefined> | string | null | undefined
  set(key: string, upload: string): Promise<void> | void
  remove(key: string): Promise<void> | void
}

const prefix = 'mediabucket '

/** Longer than services store an upload. Milliseconds. */
const maxAge = 30 * 24 * 3_600_000

/** Stores uploads in the browser's localStorage, for the page's origin. Without localStorage, or if it is full, nothing is stored. */
export function localStorageResume(): ResumeStore {
  return {
    get: (key) =>
      attempt((storage) => storage.getItem(`${prefix}${key}`))
        ?.split(' ')
        .at(0),
    set(key, upload) {
      attempt(dropOld)
      attempt((storage) => storage.setItem(`${prefix}${key}`, `${upload} ${Date.now()}`))
    },
    remove: (key) => attempt((storage) => storage.removeItem(`${prefix}${key}`)),
  }
}

/** The members of Storage that are used, declared here because the package is compiled without DOM types. */
interface Storage {
  readonly length: number
  key(index: number): string | null
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** localStorage may be missing, forbidden (reading the property throws) or full. */
function attempt<T>(use: (storage: Storage) => T): T | undefined {
  try {
    const { localStorage } = globalThis as { readonly localStorage?: Storage }
    return localStorage && use(localStorage)
  } catch {
    return undefined
  }
}

function dropOld(storage: Storage): void {
  const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? '')
  for (const key of keys.filter((one) => one.startsWith(prefix))) {
    const since = Number(storage.getItem(key)?.split(' ')[1])
    if (!(Date.now() - since < maxAge)) storage.removeItem(key)
  }
}
