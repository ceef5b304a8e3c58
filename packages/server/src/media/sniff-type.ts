import { isUtf8 } from 'node:buffer'
import { FileTypeParser } from 'file-type'
import type { BlobStore } from '../blobs/blobs.ts'
import type { ReceivedBlob } from '../blobs/received-blob.ts'
import { errorCode } from '../core/error-code.ts'
import { Fault } from '../core/fault.ts'
import { createSignatureTest } from './has-signature.ts'
import type { ReceivedFile } from './receive-files.ts'

export interface SniffedType {
  readonly mime: string
  /** Without the dot. */
  readonly ext: string
}

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
  const byHead = await orNull(new SignatureParser().fromBuffer(file.head))
  if (byHead !== null && isTextWithSignature(byHead.mime, file.head)) return null
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
      return (await new SignatureParser().fromBlob(bytes)) ?? null
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

/** Binary formats whose whole signature is two or three letters. A text can begin with these letters too ("BMW"). */
const letterSignatures: ReadonlySet<string> = new Set([
  'image/bmp',
  'audio/x-musepack',
  'application/x-bzip2',
  'application/x-msdownload',
  'application/x-shockwave-flash',
])

const isTextWithSignature = (mime: string, head: Uint8Array): boolean =>
  letterSignatures.has(mime) && isText(head)

function isText(head: Uint8Array): boolean {
  if (head.some((byte) => byte < 0x20 && !whitespace.has(byte))) return false
  // The head may end within a character of up to four bytes.
  return [0, 1, 2, 3].some((cut) => isUtf8(head.subarray(0, head.byteLength - cut)))
}

/** Tab, line feed, form feed, carriage return. */
const whitespace: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0c, 0x0d])

interface CheckOptions {
  readonly offset?: number
  readonly mask?: readonly number[]
  readonly encoding?: string
}

declare module 'file-type' {
  interface FileTypeParser {
    readonly buffer: Uint8Array
    check(signature: readonly number[], options?: CheckOptions): boolean
    checkString(signature: string, options?: CheckOptions): boolean
  }
}

/**
 * Compares the first byte before the library compares a whole signature. The library tries nearly 200 signatures and
 * allocates an array for each, which took a tenth of an upload's time and two fifths of its garbage.
 */
export class SignatureParser extends FileTypeParser {
  override check(signature: readonly number[], options?: CheckOptions): boolean {
    if (options?.mask === undefined && signature[0] !== this.buffer[options?.offset ?? 0]) return false
    return super.check(signature, options)
  }

  override checkString(signature: string, options?: CheckOptions): boolean {
    if (options?.encoding === undefined && signature.charCodeAt(0) !== this.buffer[options?.offset ?? 0])
      return false
    return super.checkString(signature, options)
  }
}
