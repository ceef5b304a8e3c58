import type { Catalog } from '../catalog/catalog.ts'
import type { Grant, TokenId } from '../catalog/records.ts'

/** Milliseconds between two recorded uses of a token. */
const interval = 3_600_000

/** Maximum number of tokens in memory. An evicted token costs one more write. */
const maxTokens = 10_000

/**
 * Records uses of tokens in the background, at most one attempt per token and hour, so that a full or busy catalog does not receive a
 * write with every request. A clock that is set back by an hour or more does not stop the recording.
 */
export function recordUseOperation(parts: {
  readonly catalog: Pick<Catalog, 'touchToken'>
  readonly onTouchFailure: (error: unknown) => void
}): (grant: Pick<Grant, 'tokenId' | 'lastUsedAt'>, at: number) => void {
  const { catalog, onTouchFailure } = parts
  const attempts = new Map<TokenId, number>()

  async function touch(id: TokenId, at: number): Promise<void> {
    try {
      await catalog.touchToken(id, at)
    } catch (error) {
      onTouchFailure(error)
    }
  }

  return ({ tokenId, lastUsedAt }, at) => {
    if (isRecent(lastUsedAt, at) || isRecent(attempts.get(tokenId) ?? null, at)) return
    attempts.delete(tokenId)
    attempts.set(tokenId, at)
    const [oldest] = attempts.keys()
    if (attempts.size > maxTokens && oldest !== undefined) attempts.delete(oldest)
    void touch(tokenId, at)
  }
}

const isRecent = (time: number | null, at: number): boolean => time !== null && Math.abs(at - time) < interval
