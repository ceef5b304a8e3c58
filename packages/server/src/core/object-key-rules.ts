import { type ItemId, isItemId } from './ids.ts'

// Keys of objects: the names that clients of the S3 protocol give to items of a bucket.

/** Bytes of UTF-8. */
export const maxKeyLength = 1_024

/** Items without a key are found below this prefix, and no key is stored there. */
export const itemsPrefix = '_items/'

export const isReservedKey = (key: string): boolean => key.startsWith(itemsPrefix)

/** Digits of the number of an item in its key, so that the order of keys is the order of numbers. */
export const itemDigits = 12

/** The key of an item without a key of its own. */
export const itemKeyOf = (seq: number, { id, extension }: ItemName): string =>
  `${itemsPrefix}${String(seq).padStart(itemDigits, '0')}-${id}${extension === null ? '' : `.${extension}`}`

interface ItemName {
  readonly id: ItemId
  readonly extension: string | null
}

const itemKeyShape = /^_items\/\d{12,16}-([0-9a-z]+)(?:\.[a-z0-9]+)?$/

/** The id in a key that has the form of `itemKeyOf`; null for another key. Only an item of which this is the key may be used. */
export function itemIdOfKey(key: string): ItemId | null {
  const [, id = ''] = itemKeyShape.exec(key) ?? []
  return isItemId(id) ? id : null
}

/** No byte of UTF-8, and greater than all of them. */
const afterAll = Buffer.of(0xff)

/** All keys that begin with this text are before it, and all later ones after it. */
export const endOf = (prefix: string): Buffer => Buffer.concat([Buffer.from(prefix), afterAll])

/** Bytes before a key and after all keys before it, as far as keys are well-formed. */
export function beforeKey(key: string): Buffer {
  const bytes = Buffer.from(key)
  const last = bytes.at(-1)
  if (last === undefined) return bytes
  if (last === 0) return bytes.subarray(0, -1)
  bytes[bytes.length - 1] = last - 1
  return Buffer.concat([bytes, Buffer.alloc(1_025, 0xff)])
}
