/** Where the service does not say when. Milliseconds. */
const usual = 4000
/** Milliseconds. */
const longest = 60_000

/**
 * Milliseconds after which a picture that did not arrive may be asked for again; null where there will be none, which
 * the service says with a 404. An `<img>` does not tell its status, so this asks for it.
 */
export async function thumbnailDelay(url: string): Promise<number | null> {
  try {
    const answer = await fetch(url, { method: 'HEAD', cache: 'no-store', credentials: 'omit' })
    if (answer.ok) return 0
    if (answer.status < 500 && answer.status !== 429) return null
    const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN)
    return seconds > 0 ? Math.min(seconds * 1000, longest) : usual
  } catch {
    return usual
  }
}
