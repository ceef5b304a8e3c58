import { CommandError, exitCodes, UsageError } from '@mediabucket/cli/command'
import type { CreatedToken, ManagedToken, NewTokenLimits, TokenManager } from '@mediabucket/client'
import { type KeyPair, keyPairOf } from '../../access/key-pairs.ts'
import { describeManagedToken, issueToken, replaceToken } from '../../access/token-operations.ts'
import type { TokenLimits } from '../../core/quotas.ts'
import type { Scope } from '../../core/token-rules.ts'
import type { TokenRecord } from '../../storage/catalog/access/tokens.ts'
import type { Catalog } from '../../storage/catalog/catalog.ts'
import { type AdministrationContext, administer, type RemoteService } from './administration.ts'
import { unknownBucket, withCatalog, withNewCatalog } from './open-catalog.ts'

/** A token of a bucket, or of the service. */
export interface ListedToken extends Omit<ManagedToken, 'bucket'> {
  readonly bucket: string | null
}

/** What a new token of a bucket has. */
export interface TokenRequest {
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly limits: TokenLimits | null
  readonly note: string | null
  /** Whether its keys for the S3 protocol are wanted. */
  readonly wantsKeys?: boolean
  /** Milliseconds since 1970, as `now`. */
  readonly expiresAt: number | null
  readonly now: number
}

interface NewToken {
  readonly id: string
  readonly token: string
  /** The name of its bucket. */
  readonly bucket: string
  readonly isNewBucket: boolean
  /** Null if they are not wanted. */
  readonly keys: KeyPair | null
}

/** The tokens of one bucket or of all, as the command reaches them. Over HTTP, without those of the service. */
export interface Tokens {
  list(): Promise<readonly ListedToken[]>
  /** Creates the bucket if it does not exist. */
  create(token: TokenRequest): Promise<NewToken>
  revoke(token: ListedToken): Promise<void>
  /** Null for a token that is not valid, or has a successor. `overlap` is in milliseconds, `expiresAt` in milliseconds since 1970. */
  rotate(
    token: ListedToken,
    rotation: { readonly overlap: number; readonly expiresAt: number | null },
  ): Promise<Pick<NewToken, 'id' | 'token'> | null>
  /** The names of all buckets, as far as the command may know them. */
  bucketNames(): Promise<readonly string[]>
}

/** Does the work on the tokens of a bucket; without a name, over HTTP on those of the bucket of the token, or on all. */
export const withTokens = (
  context: AdministrationContext,
  bucket: string | undefined,
  work: (tokens: Tokens) => Promise<void>,
  openCatalog: typeof withCatalog = withCatalog,
): Promise<void> =>
  administer(
    context,
    async (remote) => work(tokensOver(remote, bucket ?? (await remote.client.whoami()).bucket)),
    (catalog) => work(tokensOf(catalog, bucket)),
    openCatalog,
  )

/** As withTokens, for a command that may run before the first start. */
export const withNewTokens = (
  context: AdministrationContext,
  bucket: string | undefined,
  work: (tokens: Tokens) => Promise<void>,
): Promise<void> => withTokens(context, bucket, work, (_, use) => withNewCatalog(context, use))

function tokensOf(catalog: Catalog, bucket: string | undefined): Tokens {
  const requireRecord = async ({ id }: Pick<ListedToken, 'id'>): Promise<TokenRecord> => {
    const found = (await catalog.listTokens(bucket)).find((token) => token.id === id)
    if (found === undefined) throw new CommandError(`there is no token "${id}"`, exitCodes.notFound)
    return found
  }
  return {
    async list() {
      if (bucket !== undefined && (await catalog.findBucketNamed(bucket)) === null)
        throw unknownBucket(bucket)
      return (await catalog.listTokens(bucket)).map(describeManagedToken)
    },
    async create(token) {
      if (bucket === undefined) throw new Error('a token is created without a bucket')
      const issued = await issueToken(catalog, { ...token, bucket })
      const keys = token.wantsKeys ? await keyPairOf(catalog, issued.id, token.now) : null
      return { bucket, ...issued, keys }
    },
    async revoke(token) {
      await catalog.revokeToken((await requireRecord(token)).id, Date.now())
    },
    rotate: async (token, rotation) =>
      await replaceToken(catalog, await requireRecord(token), rotation, Date.now()),
    bucketNames: async () => (await catalog.listBuckets()).map(({ name }) => name),
  }
}

/** Those of one bucket; with null, of all, with a service token. */
function tokensOver({ client, service }: RemoteService, bucket: string | null): Tokens {
  function managerOf(name: string | null): TokenManager {
    if (name === null) throw new UsageError('with a service token, --bucket NAME is needed')
    return service.bucket(name).tokens
  }
  async function* names(): AsyncGenerator<string> {
    if (bucket !== null) yield bucket
    else for await (const { name } of service.buckets.list()) yield name
  }
  return {
    async list() {
      const found: ListedToken[] = []
      for await (const name of names()) for await (const token of managerOf(name).list()) found.push(token)
      return found
    },
    async create(request) {
      const sent = sentToken(request)
      try {
        return withKeys(await managerOf(bucket).create(sent), false)
      } catch (error) {
        // A service token creates the bucket.
        if (bucket === null || !isProblem(error, 404) || (await client.whoami()).bucket !== null) throw error
        const { token } = await service.buckets.create({ name: bucket, token: sent })
        if (token === null) throw error
        return withKeys(token, true)
      }
    },
    revoke: (token) => managerOf(token.bucket).revoke(token.id),
    async rotate(token, { overlap, expiresAt }) {
      try {
        return await managerOf(token.bucket).rotate(token.id, {
          overlapSeconds: Math.round(overlap / 1000),
          expiresAt: dateOrNull(expiresAt),
        })
      } catch (error) {
        if (isProblem(error, 409)) return null
        throw error
      }
    },
    bucketNames: async () => [],
  }
}

const withKeys = (created: CreatedToken, isNewBucket: boolean): NewToken => {
  const { access_key_id, secret_access_key } = created
  const keys =
    access_key_id === undefined || secret_access_key === undefined
      ? null
      : { access_key_id, secret_access_key }
  return { ...created, isNewBucket, keys }
}

const dateOrNull = (time: number | null): Date | null => (time === null ? null : new Date(time))

const isProblem = (error: unknown, status: number): boolean =>
  error instanceof Error && 'status' in error && error.status === status

/** A new token as the client takes it. */
export const sentToken = ({
  name,
  scopes,
  limits,
  note,
  expiresAt,
  wantsKeys,
}: Omit<TokenRequest, 'now'>) => ({
  ...{
    name,
    scopes,
    s3: wantsKeys || undefined,
    note: note ?? undefined,
    limits: limits === null ? undefined : sentLimits(limits),
  },
  expiresAt: dateOrNull(expiresAt) ?? undefined,
})

const sentLimits = (limits: TokenLimits): NewTokenLimits => ({
  maxItems: limits.maxItems ?? undefined,
  maxBytes: limits.maxBytes ?? undefined,
  maxFileSize: limits.maxFileSize ?? undefined,
  types: limits.types ?? undefined,
  itemDays: limits.itemDays ?? undefined,
  labels: limits.labels ?? undefined,
})
