import { createHash } from 'node:crypto'
import { Fault } from '../../core/fault.ts'

/** What `Upload-Checksum` may name, and how many bytes its value has. */
const lengths = { sha1: 20, sha256: 32 }

export const checksumAlgorithms = Object.keys(lengths)

export interface Checksum {
  readonly algorithm: keyof typeof lengths
  readonly value: Buffer
}

/**
 * "The Upload-Checksum header MUST consist of the name of the used checksum algorithm and the Base64 encoded checksum
 * separated by a space." Throws Fault `checksum-malformed`: "400 Bad Request if the checksum algorithm is not supported".
 */
export function parseChecksum(header: string): Checksum {
  const [name = '', encoded = '', ...more] = header.split(' ')
  const algorithm = isKnown(name) ? name : null
  const value = Buffer.from(encoded, 'base64')
  if (
    algorithm === null ||
    more.length > 0 ||
    value.toString('base64') !== encoded ||
    value.length !== lengths[algorithm]
  )
    throw new Fault(
      'checksum-malformed',
      `Upload-Checksum must be one of ${checksumAlgorithms.join(', ')}, a space, and the Base64 of the checksum.`,
    )
  return { algorithm, value }
}

const isKnown = (name: string): name is Checksum['algorithm'] => Object.hasOwn(lengths, name)

/** The source, which fails at its end with Fault `checksum-mismatch` where its bytes have another checksum. */
export async function* checked(
  source: AsyncIterable<Uint8Array>,
  { algorithm, value }: Checksum,
): AsyncGenerator<Uint8Array, void, void> {
  const hash = createHash(algorithm)
  for await (const chunk of source) {
    hash.update(chunk)
    yield chunk
  }
  if (!hash.digest().equals(value))
    throw new Fault('checksum-mismatch', `The ${algorithm} of the bytes that arrived is not the one sent.`)
}
