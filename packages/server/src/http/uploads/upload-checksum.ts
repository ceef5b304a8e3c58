import { createHash } from 'node:crypto'
import { Fault } from '../../core/fault.ts'

/** Bytes of a checksum. tus 1.0.0, Checksum: "The Server MUST support at least the SHA1 checksum algorithm". */
const sizes = { sha1: 20, sha256: 32 }

export const checksumAlgorithms = Object.keys(sizes)

export interface Checksum {
  readonly algorithm: keyof typeof sizes
  readonly value: Buffer
}

/** Parses `Upload-Checksum`. Throws Fault `checksum-malformed`. */
export function parseChecksum(header: string): Checksum {
  // tus 1.0.0, Checksum: "The header MUST consist of the name of the used checksum algorithm and the Base64 encoded
  // checksum separated by a space."
  const [name = '', encoded = '', ...more] = header.split(' ')
  const algorithm = isAlgorithm(name) ? name : null
  const value = Buffer.from(encoded, 'base64')
  // tus 1.0.0, Checksum: "400 Bad Request if the checksum algorithm is not supported by the server".
  if (
    algorithm === null ||
    more.length > 0 ||
    value.toString('base64') !== encoded ||
    value.length !== sizes[algorithm]
  )
    throw new Fault(
      'checksum-malformed',
      `Upload-Checksum must be one of ${checksumAlgorithms.join(', ')}, a space, and the checksum in Base64.`,
    )
  return { algorithm, value }
}

/** tus 1.0.0, Checksum: "The names of the checksum algorithms MUST only consist of ASCII characters" without capitals. */
const isAlgorithm = (name: string): name is Checksum['algorithm'] => Object.hasOwn(sizes, name)

/** The source, which throws Fault `checksum-mismatch` at its end if its bytes have another checksum. */
export async function* verifyChecksum(
  source: AsyncIterable<Uint8Array>,
  { algorithm, value }: Checksum,
): AsyncGenerator<Uint8Array, void, void> {
  const hash = createHash(algorithm)
  for await (const bytes of source) {
    hash.update(bytes)
    yield bytes
  }
  // tus 1.0.0, Checksum: "Once the entire request has been received, the Server MUST verify the uploaded chunk against the
  // provided checksum".
  if (!hash.digest().equals(value))
    throw new Fault(
      'checksum-mismatch',
      `The ${algorithm} of the received bytes is not that of Upload-Checksum.`,
    )
}
