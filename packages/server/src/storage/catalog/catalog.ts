import { ExplainedError } from '../../core/faults.ts'
import type { Actor } from '../../core/token-rules.ts'
import type { KeyReads } from './access/keys.ts'
import type { TokenReads } from './access/tokens.ts'
import type { BucketReads } from './buckets.ts'
import type { BucketKey, Methods } from './declarations.ts'
import type { FeedBell } from './feed/feed-bell.ts'
import { type HistoryCatalog, openHistory } from './feed/history.ts'
import type { ItemReads } from './items/items.ts'
import {
  bucketKeyOf,
  type Input,
  isWriteKind,
  type Operations,
  type Output,
  reads,
  type Write,
  type WriteKind,
  writes,
} from './nouns.ts'
import type { CatalogStatistics } from './records.ts'
import type { Query } from './statements.ts'
import { isAudited, readStatistics } from './upkeep.ts'

/** The reads that each engine has written for itself, because requests wait for them. */
type OwnReads = Methods<BucketReads & ItemReads & KeyReads & TokenReads> &
  Pick<Operations, 'findKey' | 'findTokenGrant'>

/**
 * Stores buckets, items, tokens, keys and uploads. A write is durable when its promise resolves. A read returns every write whose promise
 * resolved before the read began, including writes of other processes. Throws Fault `catalog-busy`, `catalog-unavailable`, `overloaded` and
 * `storage-full`; any other error is unexpected. `by` is who makes a write, for the audit log: the service itself if it is left out.
 */
export interface Catalog extends OwnReads, Omit<Operations, keyof HistoryCatalog>, HistoryCatalog {
  /** A random value that identifies this data. A restore generates a new one, so that no revision identifies two states. */
  readonly epoch: string

  /** As FeedBell.watch. */
  readonly watchChanges: FeedBell['watch']

  statistics(): Promise<CatalogStatistics>

  close(): Promise<void>
}

/** What each engine has written for itself: the reads that requests wait for, and how statements and writes are run. */
export interface CatalogEngine extends OwnReads, Pick<Catalog, 'epoch' | 'close'> {
  query<T>(query: Query<T>): Promise<T>
  /** Applies a write durably. */
  apply<K extends WriteKind>(write: Write<K>): Promise<Output<K>>
  readonly bell: FeedBell
  /** Where the catalog is, so that a copy of it can be recognized; null if it cannot be known. */
  location(): Promise<string | null>
  /** Changes that are queued or in progress. */
  pendingCount(): number
  /** Size of the write-ahead log. Bytes. */
  logBytes(): number
}

/** What is the same for all engines: who makes the writes of a process for the audit log, and who learns of a renewal. */
export interface CatalogOptions {
  /** Makes the writes for which no actor is given. Without it, nothing is recorded in the audit log. */
  readonly actor?: Actor | null
  /** The actor if the last start of the service has turned the audit log on (storeAudit). */
  readonly actorIfAudited?: Actor | null
  /** Called when this process has noticed that the data have gone back (feed/history.ts). */
  readonly onRenewal?: () => void
}

/** As createCatalog, with the actor of the options. */
export async function createCatalogFor(
  engine: CatalogEngine,
  { actor = null, actorIfAudited = null, onRenewal = () => {} }: CatalogOptions,
): Promise<Catalog> {
  try {
    const stored = actor === null && actorIfAudited !== null && (await engine.query(isAudited()))
    return createCatalog(engine, stored ? actorIfAudited : actor, await engine.location(), onRenewal)
  } catch (error) {
    // Its connections would keep the process alive.
    await engine.close().catch(() => undefined)
    throw error
  }
}

/** `actor` makes the writes for which no actor is given. If it is null, nothing is recorded in the audit log. */
function createCatalog(
  engine: CatalogEngine,
  actor: Actor | null,
  openedAt: string | null,
  onRenewal: () => void,
): Catalog {
  const { query, apply, bell, location, pendingCount, logBytes, ...ofEngine } = engine
  const methods = createMethods(engine, actor)
  const history = openHistory({
    ...{ query, location, openedAt, check: methods.checkHistory, renew: methods.renewHistory },
    ...{ onNotice: onRenewal, onRenewal: () => bell.check() },
  })
  return {
    ...methods,
    ...ofEngine,
    ...history,
    recordEvents: actor === null ? async () => {} : methods.recordEvents,
    watchChanges: (bucketId, onChange) => bell.watch(bucketId, onChange),
    statistics: async () => ({
      ...(await query(readStatistics())),
      ...{ waitingChanges: pendingCount(), logBytes: logBytes() },
    }),
  }
}

/** The methods of the operations that the nouns declare. */
function createMethods(
  { query, apply, bell }: Pick<CatalogEngine, 'query' | 'apply' | 'bell'>,
  actor: Actor | null,
): Operations {
  const readWith =
    (read: (typeof reads)[string]) =>
    (...input: unknown[]) =>
      query(read(...input))

  const writeOf = (kind: WriteKind) => {
    const { by, changesItems } = writes[kind]
    return async (...input: Input<WriteKind>) => {
      if (by !== null) setActor(input, by, actor)
      const write = { kind, input }
      const output = await apply(write)
      if (changesItems) ring(bell, bucketKeyOf(write))
      return output
    }
  }
  return Object.fromEntries([
    ...Object.entries(reads).map(([name, read]) => [name, readWith(read)] as const),
    ...Object.keys(writes)
      .filter(isWriteKind)
      .map((kind) => [kind, writeOf(kind)] as const),
  ])
}

/** Without an actor of the process, nothing is recorded. A list with holes takes longer to send to a thread. */
function setActor(input: unknown[], by: number, actor: Actor | null): void {
  if (actor === null && input.length <= by) return
  while (input.length < by) input.push(undefined)
  input[by] = actor === null ? undefined : (input[by] ?? actor)
}

function ring(bell: FeedBell, key: BucketKey | null): void {
  if (key !== null && 'bucketId' in key) bell.ring(key.bucketId)
  else bell.check()
}

/** This program cannot open the catalog; the message contains the reason and what to do. */
export class CatalogVersionError extends ExplainedError {
  override readonly name = 'CatalogVersionError'
}

/** The database of the catalog cannot be used; the message contains the reason and what to do. */
export class DatabaseError extends ExplainedError {
  override readonly name = 'DatabaseError'
}

/**
 * Why the data of a development version are refused, and how to move them. `commit` opens them, and its backups are restored
 * (storage/catalog/engines/sqlite/sqlite-transfer.ts).
 */
export const developmentText = (place: string, commit: '7ac0c5b8' | '661e7aee'): string =>
  `${place} was written by a development version: make a backup of it with mediabucket of commit ${commit}, and restore that with this version (docs/operations/upgrade.md).`
