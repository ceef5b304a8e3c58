import type { ItemId } from '../core/media-id.ts'

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

/** Bytes that the signatures of the type sniffer need. Each large upload in progress holds this much in memory. */
export const headLength = 4_100
