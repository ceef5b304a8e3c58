import type { BlobStore } from '../blobs/blobs.ts'
import type { ReceivedBlob } from '../blobs/received-blob.ts'
import { decodeText } from '../core/charset.ts'
import { errorCode } from '../core/error-code.ts'
import { Fault } from '../core/fault.ts'
import type { ReceivedFile } from './receive-files.ts'
import { createSignatureTest, isTransportStream, SignatureParser } from './signatures.ts'
import { type SniffedType, textTypeOf } from './text-types.ts'

/** Milliseconds. Each scan of the library is bounded; this limits the time on a slow disk or store. */
const sniffTimeout = 2_000

const hasSignature = await createSignatureTest()

/**
 * The type of the bytes; null if no signature matches, at once for most small files of such types. Reads the whole file only where its head
 * may not be enough. If the parser fails, the type is unknown. If the bytes cannot be read in time, resolves with the type of the head, or
 * with `isRequired` rejects with Fault `overloaded`.
 */
export function sniffType(
  blobs: Pick<BlobStore, 'peek'>,
  file: ReceivedFile,
  options: { readonly isRequired?: boolean } = {},
): Promise<SniffedType | null> | null {
  return 'bytes' in file && !hasSignature(file.bytes) ? null : sniffSigned(blobs, file, options)
}

async function sniffSigned(
  blobs: Pick<BlobStore, 'peek'>,
  file: ReceivedFile,
  { isRequired = false },
): Promise<SniffedType | null> {
  const text = decodeText(file.head)
  // Few formats are text. All other signatures of letters may be the first words of a text.
  if (text !== null) return textTypeOf(text)
  const byHead = await orNull(new SignatureParser(file.size).fromBuffer(file.head))
  if (byHead?.mime === 'video/mp2t' && !isTransportStream(file.head)) return null
  if ('bytes' in file || file.size === file.head.byteLength) return byHead
  if (byHead !== null && !isContainer(file.head)) return byHead
  const whole = await sniffWhole(blobs, file)
  if (whole !== 'unread') return whole ?? byHead
  if (isRequired)
    throw new Fault('overloaded', 'The type of the file could not be determined in time; try again.')
  return byHead
}

/** The start of ZIP files and of ID3 tags. What follows them decides the type, and may be beyond the head. */
const containerSignatures = ['PK\x03\x04', 'ID3']
const isContainer = (head: Uint8Array): boolean =>
  containerSignatures.some((signature) =>
    Buffer.from(head.subarray(0, signature.length)).equals(Buffer.from(signature)),
  )

async function sniffWhole(
  blobs: Pick<BlobStore, 'peek'>,
  blob: ReceivedBlob,
): Promise<SniffedType | 'unread' | null> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<'unread'>((resolve) => {
    timer = setTimeout(resolve, sniffTimeout, 'unread')
  })
  const sniff = async () => {
    const bytes = await blobs.peek(blob).catch(() => null)
    if (bytes === null) return 'unread'
    try {
      return (await new SignatureParser(blob.size).fromBlob(bytes)) ?? null
    } catch (error) {
      return isReadError(error) ? 'unread' : null
    }
  }
  try {
    return await Promise.race([sniff(), timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Whether a read failed, and not the parser. Errors of a disk have a code or are DOMExceptions; errors of a store have a code or are Faults. */
const isReadError = (error: unknown): boolean =>
  error instanceof Fault || error instanceof DOMException || errorCode(error) !== null

async function orNull(sniffing: Promise<SniffedType | null | undefined>): Promise<SniffedType | null> {
  try {
    return (await sniffing) ?? null
  } catch {
    return null
  }
}
