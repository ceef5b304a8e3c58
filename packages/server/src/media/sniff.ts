import type { BlobStore, ReceivedBlob } from '../blobs/blobs.ts'
import { isLettersOnly } from './letters-only.ts'
import { TypeParser } from './type-parser.ts'

export interface SniffedType {
  readonly mime: string
  /** Without the dot. */
  readonly ext: string
}

/** Milliseconds. Every scan has an end of its own; this bounds what a slow disk makes of it. */
const patience = 2_000

/**
 * The type that the bytes show, null when they show none. The head decides, but where it cannot be enough the whole
 * file is asked. Never throws: bytes that break the sniffer are bytes of an unknown type.
 */
export async function sniffType(
  blobs: Pick<BlobStore, 'peek'>,
  blob: ReceivedBlob,
): Promise<SniffedType | null> {
  const byHead = await quietly(new TypeParser().fromBuffer(blob.head))
  if (byHead !== null && isLettersOnly(byHead.mime, blob.head)) return null
  if (blob.size === blob.head.byteLength || (byHead !== null && !hidesItsType(blob.head))) return byHead
  return (await within(patience, async () => new TypeParser().fromBlob(await blobs.peek(blob)))) ?? byHead
}

/** ZIP files, and an ID3 tag that can be longer than the head, tell by what follows what they are. */
const hidingSignatures = ['PK\x03\x04', 'ID3']
const hidesItsType = (head: Uint8Array): boolean =>
  hidingSignatures.some((signature) =>
    Buffer.from(head.subarray(0, signature.length)).equals(Buffer.from(signature)),
  )

async function quietly(sniffing: Promise<SniffedType | null | undefined>): Promise<SniffedType | null> {
  try {
    return (await sniffing) ?? null
  } catch {
    return null
  }
}

async function within(
  time: number,
  sniff: () => Promise<SniffedType | undefined>,
): Promise<SniffedType | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, time, null)
  })
  try {
    return await quietly(Promise.race([sniff(), late]))
  } finally {
    clearTimeout(timer)
  }
}
