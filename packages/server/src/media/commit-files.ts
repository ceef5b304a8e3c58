import { createHash } from 'node:crypto'
import type { BlobStore } from '../blobs/blobs.ts'
import type { ReceivedBlob } from '../blobs/received-blob.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { AddedItem, BucketId, IdempotentRequest, NewItem, TokenId } from '../catalog/records.ts'
import type { Actor } from '../core/actor.ts'
import { Fault } from '../core/fault.ts'
import type { OnStored } from './new-item.ts'
import type { ReceivedFile } from './receive-files.ts'

/** What a client sent, the file that is stored, and its item. */
export interface Arrival {
  readonly sent: {
    readonly filename: string | null
    readonly declaredType: string | null
    /** Of the bytes as they were sent; 32 bytes. */
    readonly sha256: Uint8Array
  }
  readonly file: ReceivedFile
  readonly item: AddedItem
}

export type CommitCatalog = Pick<Catalog, 'addItems' | 'addItemsOnce' | 'findRepeated'>

/** The idempotency key of a request (docs/interface.md I1). */
export interface RequestKey {
  readonly tokenId: TokenId
  readonly key: string
}

export interface Stored {
  readonly items: readonly NewItem[]
  /** True if an earlier request with the same key stored them. */
  readonly repeated: boolean
}

interface CommitOptions {
  readonly by: Actor
  readonly key: RequestKey | null
  /** Called before the commit of the rows. */
  readonly onCommit?: () => void
}

/**
 * Stores the items of one request: all or none, durable when it resolves. If it throws, the files are discarded. Exception:
 * if the outcome of the commit is unknown, blobs stay, because rows may name them.
 */
export type CommitFiles = (
  bucketId: BucketId,
  arrivals: readonly Arrival[],
  options: CommitOptions,
) => Promise<Stored>

/** Milliseconds until an idempotency key expires (docs/interface.md I5). */
const keyLifetime = 86_400_000

export function commitFilesOperation(parts: {
  readonly catalog: CommitCatalog
  readonly blobs: Pick<BlobStore, 'commit' | 'discard'>
  readonly onStored: OnStored
  readonly now: () => number
}): CommitFiles {
  const { catalog, blobs, onStored, now } = parts

  /** Returns the stored items: these, or those of the first request with the same key. */
  async function commitRows(
    bucketId: BucketId,
    items: readonly AddedItem[],
    request: IdempotentRequest | null,
    by: Actor,
  ): Promise<readonly NewItem[]> {
    if (request) return catalog.addItemsOnce(bucketId, items, request, by)
    await catalog.addItems(bucketId, items, by)
    return items
  }

  function requestOf(key: RequestKey, arrivals: readonly Arrival[]): IdempotentRequest {
    const at = now()
    return { ...key, fingerprint: fingerprintOf(arrivals), now: at, expiresAt: at + keyLifetime }
  }

  return async (bucketId, arrivals, { by, key, onCommit = () => {} }) => {
    const items = arrivals.map(({ item }) => item)
    const stored = blobsOf(arrivals)
    const request = key && requestOf(key, arrivals)
    try {
      const first = request && (await catalog.findRepeated(request))
      if (first) {
        await blobs.discard(stored)
        return { items: first, repeated: true }
      }
      if (stored.length > 0) await blobs.commit(stored)
    } catch (error) {
      await blobs.discard(stored)
      throw error
    }
    try {
      onCommit()
      const committed = await commitRows(bucketId, items, request, by)
      const repeated = committed[0]?.id !== items[0]?.id
      if (repeated) await blobs.discard(stored)
      else for (const item of items) onStored(bucketId, item)
      return { items: committed, repeated }
    } catch (error) {
      // After any other error, the outcome is unknown: the rows may be committed, so their blobs stay.
      if (error instanceof Fault && notCommitted.has(error.code)) await blobs.discard(stored)
      throw error
    }
  }
}

/** The files that the blob store has received. */
export const blobsOf = (received: readonly { readonly file: ReceivedFile }[]): ReceivedBlob[] =>
  received.flatMap(({ file }) => ('handle' in file ? [file] : []))

/** Equal for requests with the same bytes, names and types in the same order (docs/interface.md I2). */
function fingerprintOf(arrivals: readonly Arrival[]): Uint8Array {
  const content = arrivals.map(({ sent: { filename, declaredType, sha256 } }) => [
    filename,
    declaredType,
    Buffer.from(sha256).toString('hex'),
  ])
  return createHash('sha256').update(JSON.stringify(content)).digest()
}

/** Faults after which the rows are certainly not committed. */
const notCommitted: ReadonlySet<string> = new Set([
  'storage-full',
  'catalog-busy',
  'quota-exceeded',
  'idempotency-key-reused',
  'token-revoked',
])
