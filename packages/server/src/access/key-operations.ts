import { Fault } from '../core/faults.ts'
import type { Actor } from '../core/token-rules.ts'
import type * as schemas from '../http/openapi/key-schemas.ts'
import type { ValueOf } from '../http/openapi/schemas.ts'
import type { SigningKey } from '../storage/catalog/access/keys.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { newSigningKey } from './signed-links.ts'

/** A key that signs URLs, without its secret (docs/interface.md H12). */
export type KeyObject = ValueOf<typeof schemas.KeyObject>

const keyObject = ({ id, createdAt }: SigningKey, state: KeyObject['state']): KeyObject => ({
  id,
  state,
  created_at: new Date(createdAt).toISOString(),
})

/** All keys in the order of their creation. The last one signs, the others verify. */
export async function listKeys(catalog: Pick<Catalog, 'signingKeys'>): Promise<readonly KeyObject[]> {
  const keys = await catalog.signingKeys()
  return keys.map((key, index) => keyObject(key, index === keys.length - 1 ? 'signs' : 'verifies'))
}

/** Creates a key, which signs from now on. */
export async function rotateKeys(catalog: Pick<Catalog, 'addSigningKey'>, by?: Actor): Promise<KeyObject> {
  const key = newSigningKey(Date.now())
  await catalog.addSigningKey(key, false, by)
  return keyObject(key, 'signs')
}

/**
 * Removes a key; all links that it has signed are invalid from then on. A new key replaces the newest one before its removal, so that no older key
 * signs again. Throws Fault `key-unknown`.
 */
export async function removeKey(
  catalog: Pick<Catalog, 'signingKeys' | 'addSigningKey' | 'removeSigningKey'>,
  id: string,
  by?: Actor,
): Promise<void> {
  const keys = await catalog.signingKeys()
  const unknown = () => new Fault('key-unknown', 'The service has no key with this id.')
  // Before the id is a value of a statement: PostgreSQL has no text with NUL.
  if (!keys.some((key) => key.id === id)) throw unknown()
  if (keys.length > 1 && keys.at(-1)?.id === id) await rotateKeys(catalog, by)
  if (!(await catalog.removeSigningKey(id, by))) throw unknown()
}
