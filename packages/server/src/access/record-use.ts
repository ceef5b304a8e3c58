import type { Catalog, Grant, TokenId } from '../catalog/catalog.ts'

/** Milliseconds: how far the recorded time of a token's last use may lag behind. */
const coarseness = 3_600_000

/** Tokens whose latest attempt is remembered; a forgotten one costs a write more, no harm. */
const remembered = 10_000

/**
 * Records uses of tokens in the background, each token at most once an hour, failures included: a catalog that is
 * full or busy is not asked again by every request. Two times that differ by an hour either way count as apart, so
 * that a clock set back does not stop the recording.
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
    if (attempts.size > remembered && oldest !== undefined) attempts.delete(oldest)
    void touch(tokenId, at)
  }
}

const isRecent = (time: number | null, at: number): boolean =>
  time !== null && Math.abs(at - time) < coarseness
