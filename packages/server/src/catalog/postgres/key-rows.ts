import type { Changes } from '../changes.ts'
import type { SigningKey } from '../key-catalog.ts'
import type { Session } from './session.ts'

// The signing keys; to be called within a transaction.

/** As addSigningKey of the catalog. */
export async function addKey(
  session: Session,
  { key, onlyFirst }: Changes['add-key']['input'],
): Promise<undefined> {
  // Others that add a key wait until this transaction ends. Reads do not.
  if (onlyFirst) await session.run('LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE')
  await session.run(
    `INSERT INTO signing_keys (id, secret, created_at)
    SELECT $1, $2, $3 WHERE NOT ($4 AND EXISTS (SELECT FROM signing_keys))`,
    ...[key.id, key.secret, key.createdAt, onlyFirst],
  )
}

/** As removeSigningKey of the catalog. */
export const removeKey = async (session: Session, { id }: Changes['remove-key']['input']): Promise<boolean> =>
  (await session.change('DELETE FROM signing_keys WHERE id = $1', id)) === 1

/** Replaces all keys. */
export async function replaceKeys(session: Session, keys: readonly SigningKey[]): Promise<void> {
  await session.run('DELETE FROM signing_keys')
  for (const key of keys) await addKey(session, { key, onlyFirst: false })
}
