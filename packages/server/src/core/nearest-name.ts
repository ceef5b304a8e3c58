/** The known name that a mistyped one is probably meant to be, or null: at most a third of its characters differ. */
export function nearestName(name: string, known: Iterable<string>): string | null {
  let nearest: string | null = null
  let least = Math.floor(name.length / 3) + 1
  for (const candidate of known) {
    const distance = editDistance(name, candidate)
    if (distance >= least) continue
    least = distance
    nearest = candidate
  }
  return nearest
}

/** Levenshtein's distance: characters to insert, delete or replace. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [at, char] of [...from].entries()) {
    const next = [at + 1]
    for (let index = 0; index < to.length; index++) {
      const replaced = (row[index] ?? 0) + (to[index] === char ? 0 : 1)
      next.push(Math.min(replaced, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
