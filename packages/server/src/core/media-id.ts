import { base32Alphabet, randomBase32 } from './base32.ts'

declare const brand: unique symbol
/** 26 characters of lower-case base32 that carry 130 random bits: holding the URL is what entitles to the bytes. */
export type MediaId = string & { readonly [brand]: 'MediaId' }

const length = 26
const shape = new RegExp(`^[${base32Alphabet}]{${length}}$`)

export const newMediaId = (): MediaId => randomBase32(length) as MediaId

/** The one guard for ids given by users; whatever passes is safe as a file name and in a URL. */
export const isMediaId = (text: string): text is MediaId => shape.test(text)
