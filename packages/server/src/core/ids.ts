import { randomBytes, randomFillSync } from 'node:crypto'

/** Crockford's base32 in lower case: no letter that resembles a digit, no character that a URL escapes. */
export const base32Alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** `length` characters that carry five random bits each. */
export type RandomBase32 = (length: number) => string

export const randomBase32: RandomBase32 = (length) => base32Letters(randomBytes(length))

/** For many values: reads 4096 random bytes at a time from the system, and uses each byte once. */
function createRandomBase32(): RandomBase32 {
  const bytes = randomBytes(4096)
  let used = bytes.length
  return (length) => {
    if (used + length > bytes.length) {
      randomFillSync(bytes)
      used = 0
    }
    used += length
    return base32Letters(bytes.subarray(used - length, used))
  }
}

/** A letter for each byte, of five of its bits. */
export function base32Letters(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += base32Alphabet.charAt(byte & 31)
  return text
}

/** The low `5 × length` bits of a whole number of at most 32 bits, most significant first. */
export function base32Of(value: number, length: number): string {
  let text = ''
  for (let shift = 5 * (length - 1); shift >= 0; shift -= 5) {
    text += base32Alphabet.charAt((value >>> shift) & 31)
  }
  return text
}

declare const itemBrand: unique symbol
/**
 * 28 characters of lower-case base32: two name the shard of the bytes, and 26 carry 130 random bits, because the URL
 * alone gives access to the bytes. Ids of the first version have only the 26.
 */
export type ItemId = string & { readonly [itemBrand]: 'ItemId' }

const shardLength = 2
const secretLength = 26
const itemShape = new RegExp(`^[${base32Alphabet}]{${secretLength}}(?:[${base32Alphabet}]{${shardLength}})?$`)

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
export const isItemId = (text: string): text is ItemId => itemShape.test(text)

declare const uploadBrand: unique symbol
/** The id of a resumable upload: 26 characters of lower-case base32, 130 random bits. */
export type UploadId = string & { readonly [uploadBrand]: 'UploadId' }

const uploadIdLength = 26
const uploadShape = new RegExp(`^[${base32Alphabet}]{${uploadIdLength}}$`)

export const newUploadId = (): UploadId => randomBase32(uploadIdLength) as UploadId

/** Letters of an id with the time of its creation. */
const timeLength = 10

/** The id of an upload in parts: it begins with its time, so that ids are in the order of their creation, and has 80 random bits. */
export function newMultipartId(now: number): UploadId {
  const high = Math.floor(now / 2 ** 25)
  const time = `${base32Of(high, 5)}${base32Of(now % 2 ** 25, timeLength - 5)}`
  return `${time}${randomBase32(uploadIdLength - timeLength)}` as UploadId
}

/** Validates every upload id that a user sends. A valid id is safe as a file name and in a URL. */
export const isUploadId = (text: string): text is UploadId => uploadShape.test(text)

/** As requireItemId. */
export function requireUploadId(id: UploadId): UploadId {
  if (!isUploadId(id)) throw new MalformedId(id)
  return id
}
