import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/fault.ts'
import { essenceOf } from '../../core/media-type.ts'
import type { Chunk } from '../../media/uploads/append-upload.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { type Checksum, verifyChecksum } from './upload-headers.ts'

export const chunkType = 'application/offset+octet-stream'

/** Whether the request declares its body as a chunk. */
export const hasChunkType = ({ headers }: IncomingMessage): boolean =>
  essenceOf(headers['content-type'] ?? '') === chunkType

/** The declared length of the body in bytes; 0 if it is not declared. */
const declaredBytes = ({ headers }: IncomingMessage): number => Number(headers['content-length'] ?? 0)

/** Throws Fault `content-coding-unsupported`. */
export function refuseContentCoding({ headers }: IncomingMessage): void {
  if (headers['content-encoding'] !== undefined)
    throw new Fault('content-coding-unsupported', 'Send the bytes without Content-Encoding.')
}

/** The body of the request as a chunk. */
export function bodyChunk(
  request: IncomingMessage,
  readBody: BodyReader,
  {
    checksum,
    ...header
  }: Pick<Chunk, 'offset' | 'length' | 'by' | 'removesMetadata' | 'expiresAt'> & {
    readonly checksum: Checksum | null
  },
): Chunk {
  const body = readBody(request)
  return {
    ...header,
    declaredBytes: declaredBytes(request),
    source: checksum === null ? body : verifyChecksum(body, checksum),
    // tus 1.0.0, Checksum: on a mismatch "the uploaded chunk MUST be discarded, and the upload and its offset MUST NOT be
    // updated". Otherwise "The Server SHOULD always attempt to store as much of the received data as possible."
    isAtomic: checksum !== null,
  }
}

/** The only chunk of an empty file. */
export const emptyChunk = (sender: Pick<Chunk, 'by' | 'removesMetadata' | 'expiresAt'>): Chunk => ({
  offset: 0,
  source: noBytes(),
  isAtomic: true,
  ...sender,
})

async function* noBytes(): AsyncGenerator<Uint8Array> {}
