/** What lies from one entry to the other, both included, in either direction; the second alone when the first is not there. */
export function rangeBetween<T>(all: readonly T[], from: T | null, to: T): T[] {
  const start = from === null ? -1 : all.indexOf(from)
  const end = all.indexOf(to)
  if (end === -1) return []
  if (start === -1) return [to]
  return all.slice(Math.min(start, end), Math.max(start, end) + 1)
}
