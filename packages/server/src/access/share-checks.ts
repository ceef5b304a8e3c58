import type { Grant } from '../catalog/catalog.ts'

// A check is authoritative for every request that was there before it began, and for no other. So requests that come
// in together with the same token share one: collect, then look; never look, then reuse.

/** `check`, shared by the calls of one turn of the event loop that name the same token. It begins when the turn is over. */
export function shareChecks(check: (token: string) => Promise<Grant>): (token: string) => Promise<Grant> {
  let gathering: { readonly over: Promise<void>; readonly checks: Map<string, Promise<Grant>> } | null = null

  function gather() {
    const over = new Promise<void>((resolve) => {
      setImmediate(() => {
        // From here on nobody can join.
        gathering = null
        resolve()
      })
    })
    return { over, checks: new Map<string, Promise<Grant>>() }
  }

  return (token) => {
    gathering ??= gather()
    const { over, checks } = gathering
    const known = checks.get(token)
    if (known) return known
    const begun = over.then(() => check(token))
    checks.set(token, begun)
    return begun
  }
}
