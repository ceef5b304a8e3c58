import { base32Alphabet, createRandomBase32, randomBase32 } from './base32.ts'

declare const brand: unique symbol
/**
 * 28 characters of lower-case base32: two name the shard of the bytes, and 26 carry 130 random bits, because the URL
 * alone gives access to the bytes. Ids of the first version have only the 26.
 */
export type ItemId = string & { readonly [brand]: 'ItemId' }

const shardLength = 2
const secretLength = 26
const shape = new RegExp(`^[${base32Alphabet}]{${secretLength}}(?:[${base32Alphabet}]{${shardLength}})?$`)

/** The most ids in one request. */
export const maxIds = 500

export const newItemId = (): ItemId => randomBase32(shardLength + secretLength) as ItemId

/** A row has an id that no service created: something else has changed the catalog. It must not become a path or a key. */
export class MalformedId extends Error {
  override readonly name = 'MalformedId'

  constructor(id: string) {
    super(`${JSON.stringify(id)} is not an id that the service creates`)
  }
}

/** Call it wherever an id becomes a path or a key: ids of rows are not validated when they are read. Throws MalformedId. */
export function requireItemId(id: ItemId): ItemId {
  if (!isItemId(id)) throw new MalformedId(id)
  return id
}

/** The part of an id that names the directory of its bytes. Throws MalformedId. */
export const shardOf = (id: ItemId): string => requireItemId(id).slice(0, shardLength)

/** Milliseconds for which new ids share a shard. */
const shardTime = 20

/**
 * Creates ids. Ids of nearly the same time share a shard: concurrent uploads share the syncs of one directory, and change few pages of the
 * catalog's index of ids.
 */
export function createItemIds(now: () => number): () => ItemId {
  const random = createRandomBase32()
  let shard = random(shardLength)
  let since = now()
  return () => {
    // The clock can be set back.
    if (Math.abs(now() - since) >= shardTime) {
      shard = random(shardLength)
      since = now()
    }
    return `${shard}${random(secretLength)}` as ItemId
  }
}

/** Validates every media id that a user sends. A valid id is safe as a file name and in a URL. */
export const isItemId = (text: string): text is ItemId => shape.test(text)
