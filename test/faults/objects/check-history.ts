import { createClient } from '../../../packages/client/src/index.ts'
import { auditActions } from '../../../packages/server/src/storage/catalog/audit/audit-events.ts'
import type { ItemChangeKind } from '../../../packages/server/src/storage/catalog/items/item-changes.ts'
import { readChanges } from '../../harness/wire.ts'
import { recordedItems } from '../check-leftovers.ts'
import type { Instance } from '../server-instances.ts'
import type { ObjectScene } from './object-clients.ts'

/** The state of an item before each change and after it; a removal may come after any. */
const next: Readonly<
  Record<Exclude<ItemChangeKind, 'removed' | 'expired'>, readonly [from: string, to: string]>
> = {
  added: ['absent', 'listed'],
  edited: ['listed', 'listed'],
  previewed: ['listed', 'listed'],
  trashed: ['listed', 'trashed'],
  restored: ['trashed', 'listed'],
}
const hasNext = (type: string): type is keyof typeof next => Object.hasOwn(next, type)

/** The whole feed of an idle bucket gives its items. Returns their ids. */
export async function checkFeed(
  { record, token, authorization }: ObjectScene,
  { server }: Instance,
): Promise<ReadonlySet<string>> {
  const states = new Map<string, string>()
  for (let after = ''; ; ) {
    const response = await server.request(`/api/changes?limit=500${after && `&after=${after}`}`, {
      headers: { authorization },
    })
    const { data, next_cursor, has_more } = await readChanges(response)
    for (const { type, item_id } of data) {
      const state = states.get(item_id) ?? 'absent'
      const [from, to] = hasNext(type) ? next[type] : [state === 'absent' ? 'listed' : state, 'removed']
      if (state !== from) record.fault('halfVisible', `${item_id} is ${type} after it was ${state}`)
      states.set(item_id, to)
    }
    after = next_cursor
    if (!has_more) break
  }
  const items = new Set<string>()
  for await (const { id } of createClient({ url: server.url, token }).items({ batchSize: 500 })) items.add(id)
  for (const [id, state] of states)
    if ((state === 'listed') !== items.has(id))
      record.fault(state === 'listed' ? 'lost' : 'returned', `${id} is ${state} in the feed`)
  for (const id of items) if (!states.has(id)) record.fault('lost', `${id} is not in the feed`)
  return items
}

/** The audit log of a bucket without a trash has each item once, and once its deletion, unless it is listed. */
export async function checkAudit(
  { record, door: { bucket } }: ObjectScene,
  directory: string,
  items: ReadonlySet<string>,
): Promise<void> {
  const stored = await recordedItems(directory, auditActions.upload, bucket)
  const deleted = await recordedItems(directory, auditActions.delete, bucket)
  const expected = new Set(stored)
  if (expected.size !== stored.length) record.fault('halfVisible', 'an upload is in the audit log twice')
  for (const id of deleted)
    if (!expected.delete(id)) record.fault('halfVisible', `${id} was deleted twice, or never stored`)
  for (const id of expected) if (!items.has(id)) record.fault('lost', `${id} has no event of its deletion`)
  for (const id of items) if (!expected.has(id)) record.fault('lost', `${id} has no event of its upload`)
}
