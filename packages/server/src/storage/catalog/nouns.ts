import * as keys from './access/keys.ts'
import * as serviceTokens from './access/service-tokens.ts'
import * as tokens from './access/tokens.ts'
import { addedBy } from './audit/audit-events.ts'
import * as auditLog from './audit/audit-log.ts'
import * as bucketCreation from './bucket-creation.ts'
import * as bucketList from './bucket-list.ts'
import * as bucketRemoval from './bucket-removal.ts'
import * as buckets from './buckets.ts'
import type { BucketKey, DeclaredWrite, OperationsOf, ResultOf, Tables } from './declarations.ts'
import * as feed from './feed/feed.ts'
import * as history from './feed/history.ts'
import * as webhookDeliveries from './feed/webhook-deliveries.ts'
import * as webhooks from './feed/webhooks.ts'
import * as items from './items/items.ts'
import * as labels from './items/labels.ts'
import * as takenTimes from './items/taken-times.ts'
import * as trash from './items/trash.ts'
import * as multipartUploads from './objects/multipart-uploads.ts'
import * as objectKeys from './objects/object-keys.ts'
import * as objectLists from './objects/object-lists.ts'
import * as replacedItems from './objects/replaced-items.ts'
import type { AddedItem, BucketId } from './records.ts'
import type { Query, Work } from './statements.ts'
import * as upkeep from './upkeep.ts'
import * as uploads from './uploads.ts'
import * as usage from './usage.ts'

/** The files that declare operations of the catalog. */
const nouns = {
  auditLog,
  bucketCreation,
  bucketList,
  bucketRemoval,
  buckets,
  feed,
  history,
  items,
  keys,
  labels,
  multipartUploads,
  objectKeys,
  objectLists,
  replacedItems,
  serviceTokens,
  takenTimes,
  tokens,
  trash,
  upkeep,
  uploads,
  usage,
  webhookDeliveries,
  webhooks,
}

type Nouns = typeof nouns
type AllOf<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer All) => void
  ? All
  : never

/** The methods of all operations that a function declares. */
export type Operations = AllOf<{ [Noun in keyof Nouns]: OperationsOf<Nouns[Noun]> }[keyof Nouns]>

type TableOf<Name extends keyof Tables> = AllOf<
  {
    [Noun in keyof Nouns]: Nouns[Noun] extends { readonly [K in Name]: infer Table } ? Table : never
  }[keyof Nouns]
>

const tablesOf = (name: keyof Tables) => Object.values<Tables>(nouns).map((noun) => noun[name])

/** The reads of all nouns. */
export const reads: Readonly<Record<string, (...input: unknown[]) => Query<unknown>>> = Object.assign(
  {},
  ...tablesOf('reads'),
)

/** The writes of all nouns. */
export const writes: TableOf<'writes'> = Object.assign({}, ...tablesOf('writes'))

type Writes = typeof writes

export const isWriteKind = (name: string): name is WriteKind => Object.hasOwn(writes, name)

type Makes = { [K in keyof Writes]: Writes[K] extends DeclaredWrite<infer Make> ? Make : never }

export type WriteKind = keyof Writes

/** A write as the writers receive it: plain data, because those of SQLite are sent to the writer thread. */
export interface Write<K extends WriteKind = WriteKind> {
  readonly kind: K
  readonly input: Input<K>
}

type Inputs = { [K in WriteKind]: Parameters<Makes[K]> }
type Outputs = { [K in WriteKind]: ResultOf<ReturnType<Makes[K]>> }
export type Input<K extends WriteKind> = Inputs[K]
export type Output<K extends WriteKind = WriteKind> = Outputs[K]

const makes: { readonly [K in WriteKind]: (...input: Input<K>) => Work<Output<K>> } = Object.assign(
  {},
  ...Object.entries(writes).map(([kind, { make }]) => ({ [kind]: make })),
)

/** The statements of a write, and its steps that each engine has written for itself. */
export const workOf = <K extends WriteKind>({ kind, input }: Write<K>): Work<Output<K>> =>
  makes[kind](...input)

export const isKind = <K extends WriteKind>(write: Write, kind: K): write is Write<K> => write.kind === kind

/** The bucket that a write locks; null if it locks none. */
export function bucketKeyOf({ kind, input }: Write): BucketKey | null {
  const { locks } = writes[kind]
  return locks === null ? null : locks(input[0] as never)
}

/** Groups consecutive `addItems` writes of one bucket. Every other write is a group of its own. */
export function groupAddedItems(writes: readonly Write[]): Write[][] {
  const groups: Write[][] = []
  let bucketId: BucketId | null = null
  for (const write of writes) {
    const [next] = addsItems(write) ? write.input : [null]
    if (next !== null && next === bucketId) groups.at(-1)?.push(write)
    else groups.push([write])
    bucketId = next
  }
  return groups
}

export const addsItems = (write: Write): write is Write<'addItems'> => write.kind === 'addItems'

/** The items of these writes, with their actors. */
export const joinItems = (writes: readonly Write<'addItems'>[]): readonly AddedItem[] =>
  writes.flatMap(({ input: [, items, by] }) => addedBy(items, by))

/** The writes whose second parameter is a list of added items. */
type ListKind = 'addItems' | 'addLimitedItems' | 'addItemsOnce'

export const hasAddedItems = (write: Write): write is Write<ListKind> =>
  addsItems(write) || write.kind === 'addLimitedItems' || write.kind === 'addItemsOnce'
