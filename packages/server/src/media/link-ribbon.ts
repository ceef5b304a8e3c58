import { promisify } from 'node:util'
import { constants, crc32, deflateRaw } from 'node:zlib'
import { shiftOf } from '../core/crc32.ts'
import { pageUrl } from '../core/page-links.ts'

// A page links every page (docs/interface.md L7), so its answer grows with the bucket; but the link of page 7 that is
// not the current page reads the same in every answer. So these bytes are made once, in blocks, and every answer is
// written from the same blocks. No request does work that grows with the number of pages, but the writing of them.

const deflate = promisify(deflateRaw)

/** Pages to a block: 40 kB plain, 3 kB compressed. An answer compresses at most two broken blocks of its own. */
export const blockPages = 512

/** Bytes as raw deflate blocks ended by a full flush, which may follow any other, and what gzip's trailer needs. */
export interface Deflated {
  readonly bytes: Buffer
  readonly plainLength: number
  readonly crc: number
  /** See core/crc32.ts. */
  readonly crcShift: number
}

/** Bytes of `text` for the middle of a gzip stream. */
export async function deflated(plain: Buffer): Promise<Deflated> {
  const bytes = await deflate(plain, { level: 6, finishFlush: constants.Z_FULL_FLUSH })
  return { bytes, plainLength: plain.length, crc: crc32(plain), crcShift: shiftOf(plain.length) }
}

export interface LinkRibbon {
  /** The links of pages `from` to `to`, each followed by a comma. */
  links(from: number, to: number): Buffer
  /** The links of a whole block; block 0 has pages 1 to `blockPages`. */
  block(index: number): Buffer
  /** Its length in bytes: arithmetic alone. */
  blockLength(index: number): number
  /** The block, compressed. */
  deflatedBlock(index: number): Promise<Deflated>
  /** Bytes held at present. */
  held(): number
}

/** `bound`: bytes to hold at the most; what lies beyond is made anew for each answer. */
export function createLinkRibbon(baseUrl: string, bound: number): LinkRibbon {
  const prefix = `{"url":${JSON.stringify(pageUrl({ baseUrl, extensions: true }, 0)).slice(0, -2)}`
  const middle = '","label":"'
  const suffix = '","active":false},'
  const fixed = prefix.length + middle.length + suffix.length

  const plainBlocks = new Map<number, Buffer>()
  const deflatedBlocks = new Map<number, Promise<Deflated>>()
  let held = 0

  function links(from: number, to: number): Buffer {
    let text = ''
    for (let page = from; page <= to; page += 1) text += prefix + page + middle + page + suffix
    return Buffer.from(text)
  }

  function block(index: number): Buffer {
    const known = plainBlocks.get(index)
    if (known) return known
    const bytes = links(index * blockPages + 1, (index + 1) * blockPages)
    if (held + bytes.length <= bound) {
      held += bytes.length
      plainBlocks.set(index, bytes)
    }
    return bytes
  }

  return {
    links,
    block,

    blockLength(index) {
      const last = (index + 1) * blockPages
      return fixed * blockPages + 2 * (digitsUpTo(last) - digitsUpTo(last - blockPages))
    },

    deflatedBlock(index) {
      const known = deflatedBlocks.get(index)
      if (known) return known
      const making = deflated(block(index))
      if (held < bound) {
        deflatedBlocks.set(index, making)
        void making.then(
          ({ bytes }) => {
            held += bytes.length
          },
          () => deflatedBlocks.delete(index),
        )
      }
      return making
    },

    held: () => held,
  }
}

/** How many digits the numbers from 1 to `last` have together. */
function digitsUpTo(last: number): number {
  let digits = 0
  for (let first = 1; first <= last; first *= 10) digits += last - first + 1
  return digits
}
