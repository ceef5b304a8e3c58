import { createHash, randomBytes } from 'node:crypto'

/** Bytes that are computed again when they are needed: different ones for each seed. */
export interface Piece {
  readonly seed: Buffer
  readonly size: number
}

export const newPiece = (size: number): Piece => ({ seed: randomBytes(16), size })

/** 5 MiB, the least size of a part that is not the last one. */
export const partSize = 5 * 1024 ** 2

const base = randomBytes(partSize)

export const bytesOf = (pieces: readonly Piece[]): Buffer<ArrayBuffer> =>
  Buffer.concat(
    pieces.flatMap(({ seed, size }) => [seed.subarray(0, size), base.subarray(0, Math.max(0, size - 16))]),
  )

const digestOf = (algorithm: string, bytes: Uint8Array, encoding: 'hex' = 'hex') =>
  createHash(algorithm).update(bytes).digest(encoding)

export const md5Of = (bytes: Uint8Array): string => digestOf('md5', bytes)
export const sha256Of = (bytes: Uint8Array): string => digestOf('sha256', bytes)

/** The entity tag of an object of these parts. */
export const etagOfParts = (etags: readonly string[]): string =>
  `${md5Of(Buffer.from(etags.join(''), 'hex'))}-${etags.length}`

/** What an object may be: the bytes and the metadata of one request. */
export interface Version {
  /** In its metadata. */
  readonly name: string
  readonly etag: string
  readonly pieces: readonly Piece[]
  readonly size: number
  readonly sha256: string
}

export function versionOf(name: string, pieces: readonly Piece[], etag?: string): Version {
  const bytes = bytesOf(pieces)
  return { name, pieces, size: bytes.length, sha256: sha256Of(bytes), etag: etag ?? md5Of(bytes) }
}
