import { base32Alphabet, randomBase32 } from './base32.ts'
import { MalformedId } from './media-id.ts'

declare const brand: unique symbol
/** The id of a resumable upload: 26 characters of lower-case base32, 130 random bits. */
export type UploadId = string & { readonly [brand]: 'UploadId' }

const length = 26
const shape = new RegExp(`^[${base32Alphabet}]{${length}}$`)

export const newUploadId = (): UploadId => randomBase32(length) as UploadId

/** Validates every upload id that a user sends. A valid id is safe as a file name and in a URL. */
export const isUploadId = (text: string): text is UploadId => shape.test(text)

/** As requireItemId. */
export function requireUploadId(id: UploadId): UploadId {
  if (!isUploadId(id)) throw new MalformedId(id)
  return id
}
