import { base32Alphabet, randomBase32 } from './base32.ts'

declare const brand: unique symbol
/** Names an upload in pieces while it lasts: 26 characters of lower-case base32, 130 random bits. */
export type UploadId = string & { readonly [brand]: 'UploadId' }

const length = 26
const shape = new RegExp(`^[${base32Alphabet}]{${length}}$`)

export const newUploadId = (): UploadId => randomBase32(length) as UploadId

/** The one guard for upload ids given by users; whatever passes is safe as a file name and in a URL. */
export const isUploadId = (text: string): text is UploadId => shape.test(text)
