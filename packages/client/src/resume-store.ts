/**
 * Where uploads that are under way are remembered, so that another process or another visit to a page goes on with
 * them. Keys hold names of files and the service's address, values an upload's id; neither holds the token. What a
 * store throws ends the upload.
 */
export interface ResumeStore {
  /** What was set last; null or undefined where nothing is kept. */
  get(key: string): Promise<string | null | undefined> | string | null | undefined
  set(key: string, upload: string): Promise<void> | void
  remove(key: string): Promise<void> | void
}

const prefix = 'mediabucket '

/** No service keeps an upload for as long. Milliseconds. */
const longest = 30 * 24 * 3_600_000

/** Remembers uploads in a browser, for its origin. Where there is no localStorage, or no room in it, nothing is kept. */
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

/** The part of Storage that is used; written out, so that the types of browsers are not needed. */
interface Storage {
  readonly length: number
  key(index: number): string | null
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** Storage may be missing, forbidden (even looking throws then) or full. */
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
    if (!(Date.now() - since < longest)) storage.removeItem(key)
  }
}
