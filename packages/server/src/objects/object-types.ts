import type { ChecksumAlgorithm } from '../core/checksums.ts'
import type { Actor } from '../core/token-rules.ts'
import type { Grant } from '../storage/catalog/records.ts'

/** Who calls an operation on objects: what the token grants in the bucket, and who it is in the audit log. */
export interface ObjectCaller extends Grant {
  readonly actor: Actor
}

export type ChecksumType = 'FULL_OBJECT' | 'COMPOSITE'

export interface ObjectChecksum {
  readonly algorithm: ChecksumAlgorithm
  /** Base64; of the type COMPOSITE with a dash and the number of parts. */
  readonly value: string
  readonly type: ChecksumType
}

/** A part of which an object was made. */
export interface ObjectPart {
  /** Bytes. */
  readonly size: number
  /** Of the algorithm of the checksum of the object, in Base64; left out for none. */
  readonly checksum?: string
}

/** What a client has stored with an object, and gets with it. */
export interface ObjectHeaders {
  readonly contentType?: string
  readonly cacheControl?: string
  readonly contentDisposition?: string
  readonly contentEncoding?: string
  readonly contentLanguage?: string
  readonly expires?: string
  /** Names are in lower case. */
  readonly metadata: Readonly<Record<string, string>>
  readonly checksum?: ObjectChecksum
}
