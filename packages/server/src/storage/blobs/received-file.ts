import { hash } from 'node:crypto'
import type { ItemId } from '../../core/ids.ts'

/** The bytes of a new item, received completely by the store and not committed. A crash may lose them. */
export interface ReceivedBlob {
  /** The id of the item. */
  readonly id: ItemId
  /** Identifies the bytes inside their store; meaningless outside it. */
  readonly handle: string
  /** Bytes. */
  readonly size: number
  /** 32 bytes. */
  readonly sha256: Uint8Array
  /** The first bytes, for sniffing the type: at least `headLength`, or the whole blob. */
  readonly head: Uint8Array
}

/** A small file, received completely into memory. The commit of its row stores the bytes in the catalog. */
export interface ReceivedBytes {
  /** Files of `receiveWhole` share buffers. Not usable after the commit. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly size: number
  /** 32 bytes. */
  readonly sha256: Uint8Array
  /** The same bytes, for sniffing the type. */
  readonly head: Uint8Array
}

/** A received file: its bytes, or a file of the blob store. */
export type ReceivedFile = ReceivedBytes | ReceivedBlob

/** The bytes of a whole file; the commit takes over their memory. */
export const received = (bytes: Uint8Array<ArrayBuffer>): ReceivedBytes => ({
  bytes,
  size: bytes.byteLength,
  sha256: hash('sha256', bytes, 'buffer'),
  head: bytes,
})
