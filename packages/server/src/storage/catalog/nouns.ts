import * as keys from './access/keys.ts'
import * as serviceTokens from './access/service-tokens.ts'
import * as tokens from './access/tokens.ts'
import { addedBy } from './audit/audit-events.ts'
import * as auditLog from './audit/audit-log.ts'
import * as bucketCreation from './bucket-creation.ts'
import * as bucketList from './bucket-list.ts'
import * as bucketRemoval from './bucket-removal.ts'
import * as buckets from './buckets.ts'
import type { BucketKey, DeclaredChange, OperationsOf, ResultOf, Tables } from './declarations.ts'
import * as feed from './feed/feed.ts'
import * as history from './feed/history.ts'
import * as webhookDeliveries from './feed/webhook-deliveries.ts'
import * as webhooks from './feed/webhooks.ts'
import * as items from './items/items.ts'
import * as labels from './items/labels.ts'
import * as takenTimes from './items/taken-times.ts'
import * as trash from './items/trash.ts'
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

/** The changes of all nouns. */
export const changes: TableOf<'changes'> = Object.assign({}, ...tablesOf('changes'))

type Changes = typeof changes

export const isChangeKind = (name: string): name is ChangeKind => Object.hasOwn(changes, name)

type Makes = { [K in keyof Changes]: Changes[K] extends DeclaredChange<infer Make> ? Make : never }

export type ChangeKind = keyof Changes

/** A change as the writers receive it: plain data, because those of SQLite are sent to the writer thread. */
export interface Change<K extends ChangeKind = ChangeKind> {
  readonly kind: K
  readonly input: Input<K>
}

type Inputs = { [K in ChangeKind]: Parameters<Makes[K]> }
type Outputs = { [K in ChangeKind]: ResultOf<ReturnType<Makes[K]>> }
export type Input<K extends ChangeKind> = Inputs[K]
export type Output<K extends ChangeKind = ChangeKind> = Outputs[K]

const makes: { readonly [K in ChangeKind]: (...input: Input<K>) => Work<Output<K>> } = Object.assign(
  {},
  ...Object.entries(changes).map(([kind, { make }]) => ({ [kind]: make })),
)

/** The statements of a change, and its steps that each engine has written for itself. */
export const workOf = <K extends ChangeKind>({ kind, input }: Change<K>): Work<Output<K>> =>
  makes[kind](...input)

export const isKind = <K extends ChangeKind>(change: Change, kind: K): change is Change<K> =>
  change.kind === kind

/** The bucket that a change locks; null if it locks none. */
export function bucketKeyOf({ kind, input }: Change): BucketKey | null {
  const { locks } = changes[kind]
  return locks === null ? null : locks(input[0] as never)
}

/** Groups consecutive `addItems` changes of one bucket. Every other change is a group of its own. */
export function groupAddedItems(changes: readonly Change[]): Change[][] {
  const groups: Change[][] = []
  let bucketId: BucketId | null = null
  for (const change of changes) {
    const [next] = addsItems(change) ? change.input : [null]
    if (next !== null && next === bucketId) groups.at(-1)?.push(change)
    else groups.push([change])
    bucketId = next
  }
  return groups
}

export const addsItems = (change: Change): change is Change<'addItems'> => change.kind === 'addItems'

/** The items of these changes, with their actors. */
export const joinItems = (changes: readonly Change<'addItems'>[]): readonly AddedItem[] =>
  changes.flatMap(({ input: [, items, by] }) => addedBy(items, by))

/** The changes whose second parameter is a list of added items. */
type ListKind = 'addItems' | 'addLimitedItems' | 'addItemsOnce'

export const hasAddedItems = (change: Change): change is Change<ListKind> =>
  addsItems(change) || change.kind === 'addLimitedItems' || change.kind === 'addItemsOnce'
