import { base32Alphabet, createRandomBase32, randomBase32 } from './base32.ts'

declare const brand: unique symbol
/**
 * 28 characters of lower-case base32: two that tell where the bytes lie, and 26 that carry 130 random bits, since holding
 * the URL is what entitles to the bytes. Ids of the first version have only the 26.
 */
export type MediaId = string & { readonly [brand]: 'MediaId' }

const shardLength = 2
const secretLength = 26
const shape = new RegExp(`^[${base32Alphabet}]{${secretLength}}(?:[${base32Alphabet}]{${shardLength}})?$`)

export const newMediaId = (): MediaId => randomBase32(shardLength + secretLength) as MediaId

/** The part of an id that tells where its bytes lie. */
export const shardOf = (id: MediaId): string => id.slice(0, shardLength)

/** Milliseconds for which new ids share a shard. */
const shardTime = 1_000

/** New ids, those of a moment in one shard: files that come together share what the disk does for a directory. */
export function createMediaIds(now: () => number): () => MediaId {
  const random = createRandomBase32()
  let shard = random(shardLength)
  let since = now()
  return () => {
    // The clock may go back.
    if (Math.abs(now() - since) >= shardTime) {
      shard = random(shardLength)
      since = now()
    }
    return `${shard}${random(secretLength)}` as MediaId
  }
}

/** The one guard for ids given by users; whatever passes is safe as a file name and in a URL. */
export const isMediaId = (text: string): text is MediaId => shape.test(text)
