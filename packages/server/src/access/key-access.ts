import { LRUCache } from 'lru-cache'
import { TokenFault } from '../core/faults.ts'
import { isTokenId, isUserId } from '../core/token-ids.ts'
import type { ServiceScope } from '../core/token-rules.ts'
import type { VerifiedGrant } from '../http/authorizer.ts'
import type { SigningKey } from '../storage/catalog/access/keys.ts'
import type { TokenGrant } from '../storage/catalog/access/service-tokens.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId, TokenId } from '../storage/catalog/records.ts'
import { secretAccessKey } from './key-pairs.ts'
import {
  type RemoveExpired,
  recordUseOperation,
  removeExpiredOf,
  requireValid,
  tokenUnknown,
} from './token-operations.ts'

/** What an access key grants. */
export interface KeyGrant {
  readonly tokenId: TokenId
  /** The bucket of its token; null for a service token. */
  readonly bucketId: BucketId | null
  readonly scopes: ReadonlySet<ServiceScope>
  /** What it grants in the bucket that was asked for; null if there is no such bucket, or the token is one of another bucket. */
  readonly ofBucket: VerifiedGrant | null
}

/** The token of an access key. */
interface FoundKey {
  /** With the bucket of this name, if one is given. */
  readonly found: TokenGrant
  /** The secrets that are accepted, the newest first: one for each key that signs URLs. */
  readonly secrets: readonly string[]
}

/** Secrets in memory at most. Deriving one takes as long as verifying a signature. */
const maxSecrets = 1_000

/** Users of an issuer have no token of this service, and so no keys. */
const isKeyId = (text: string): text is TokenId => isTokenId(text) && !isUserId(text)

interface AccessKeyParts {
  readonly catalog: Pick<Catalog, 'findTokenGrant' | 'touchToken' | 'signingKeys'>
  readonly removeExpired: RemoveExpired
  readonly now: () => number
  readonly onTouchFailure: (error: unknown) => void
}

/** Finds access keys of the S3 protocol: the ids of tokens (docs/interface.md SP1). */
export class AccessKeys {
  readonly #parts: AccessKeyParts
  readonly #recordUse: ReturnType<typeof recordUseOperation>
  readonly #secrets = new LRUCache<string, string>({ max: maxSecrets })

  constructor(parts: AccessKeyParts) {
    this.#parts = parts
    this.#recordUse = recordUseOperation(parts)
  }

  /** Throws Fault `token-unknown`. */
  async find(accessKeyId: string, bucket: string | null): Promise<FoundKey> {
    if (!isKeyId(accessKeyId)) throw tokenUnknown()
    const { catalog } = this.#parts
    const [found, keys] = await Promise.all([
      catalog.findTokenGrant(accessKeyId, bucket),
      catalog.signingKeys(),
    ])
    if (found === null) throw tokenUnknown()
    return { found, secrets: keys.toReversed().map((key) => this.#secretOf(key, accessKeyId)) }
  }

  /** What a found token grants to a request whose signature is right. Throws Fault `token-revoked` and `token-expired`. */
  grant(found: TokenGrant): KeyGrant {
    const { removeExpired, now } = this.#parts
    const at = now()
    requireValid(found, at, 0)
    this.#recordUse(found, at)
    const { tokenId, bucketId, scopes, ofBucket } = found
    return {
      ...{ tokenId, bucketId, scopes },
      ofBucket: ofBucket && removeExpiredOf(ofBucket, removeExpired, at),
    }
  }

  /** What the token of a request grants now. Throws as `find` and `grant`. */
  async refresh(accessKeyId: string, bucket: string | null): Promise<KeyGrant> {
    return this.grant((await this.find(accessKeyId, bucket)).found)
  }

  #secretOf(key: SigningKey, accessKeyId: string): string {
    const name = `${key.id} ${accessKeyId}`
    const secret = this.#secrets.get(name) ?? secretAccessKey(key, accessKeyId)
    this.#secrets.set(name, secret)
    return secret
  }
}

/** The fault of a request whose signature is wrong, which counts as a guess. */
export const wrongSignature = (tokenId: string): TokenFault => new TokenFault(tokenUnknown(), tokenId)
