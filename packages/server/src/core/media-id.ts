import { randomBytes } from 'node:crypto'

declare const brand: unique symbol
/** 26 characters of lower-case base32 that carry 130 random bits: holding the URL is what entitles to the bytes. */
export type MediaId = string & { readonly [brand]: 'MediaId' }

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const length = 26
const shape = new RegExp(`^[${alphabet}]{${length}}$`)

export function newMediaId(): MediaId {
  let id = ''
  for (const byte of randomBytes(length)) id += alphabet.charAt(byte & 31)
  return id as MediaId
}

/** The one guard for ids given by users; whatever passes is safe as a file name and in a URL. */
export const isMediaId = (text: string): text is MediaId => shape.test(text)
