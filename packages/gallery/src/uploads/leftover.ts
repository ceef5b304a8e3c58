const key = (bucket: string) => `mediabucket.uploads.${bucket}`

/** Remembers that a bucket has unfinished uploads, so that the uploader is loaded for them and not otherwise. */
export function rememberLeftover(bucket: string, left: boolean): void {
  try {
    if (left) localStorage.setItem(key(bucket), '1')
    else localStorage.removeItem(key(bucket))
  } catch {
    // Then uploads go on with the next file that is added.
  }
}

export function hasLeftover(bucket: string): boolean {
  try {
    return localStorage.getItem(key(bucket)) !== null
  } catch {
    return false
  }
}
