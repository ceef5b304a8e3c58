import { keyEvent } from '../audit-log/events.ts'
import type { Changes } from '../changes.ts'
import type { SigningKey } from '../key-catalog.ts'
import { recordEvents } from './audit-log.ts'
import type { Session } from './session.ts'

// The signing keys; to be called within a transaction.

/** As addSigningKey of the catalog. */
export async function addKey(
  session: Session,
  { key, onlyFirst, by }: Changes['add-key']['input'],
): Promise<undefined> {
  // Others that add a key wait until this transaction ends. Reads do not.
  if (onlyFirst) await session.run('LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE')
  const added = await session.change(
    `INSERT INTO signing_keys (id, secret, created_at)
    SELECT $1, $2, $3 WHERE NOT ($4 AND EXISTS (SELECT FROM signing_keys))`,
    ...[key.id, key.secret, key.createdAt, onlyFirst],
  )
  if (added === 1 && by !== undefined) await recordEvents(session, [keyEvent('key-create', key.id, by)])
}

/** As removeSigningKey of the catalog. */
export async function removeKey(
  session: Session,
  { id, by }: Changes['remove-key']['input'],
): Promise<boolean> {
  const isRemoved = (await session.change('DELETE FROM signing_keys WHERE id = $1', id)) === 1
  if (isRemoved && by !== undefined) await recordEvents(session, [keyEvent('key-remove', id, by)])
  return isRemoved
}

/** Replaces all keys. */
export async function replaceKeys(session: Session, keys: readonly SigningKey[]): Promise<void> {
  await session.run('DELETE FROM signing_keys')
  for (const key of keys) await addKey(session, { key, onlyFirst: false })
}
