import { promisify } from 'node:util'
import { constants, crc32, deflateRaw, deflateRawSync } from 'node:zlib'
import { shiftOf } from '../core/crc32.ts'
import { pageUrl } from '../core/page-links.ts'

// A page links every page (docs/interface.md L7), so its answer grows with the bucket; but the link of page 7 that is
// not the current page reads the same in every answer. So these bytes are made once, and every answer is written from
// them. No request does work that grows with the number of pages, but the writing of bytes.

const deflate = promisify(deflateRaw)

/** Pages to a sheet, the piece in which plain links are made and written: 700 kB. */
const sheetPages = 8192

/** Pages to a compressed block: 3 kB for 40 kB. An answer compresses at most two broken blocks of its own. */
export const blockPages = 512

/** Bytes as raw deflate blocks ended by a full flush, which may follow any other, and what gzip's trailer needs. */
export interface Deflated {
  readonly bytes: Buffer
  readonly plainLength: number
  readonly crc: number
  /** See core/crc32.ts. */
  readonly crcShift: number
}

// A window and tables for blocks of this length; zlib's own would be four times as much memory for each.
const compact = { level: 6, windowBits: 14, memLevel: 7, finishFlush: constants.Z_FULL_FLUSH }

function describe(view: Buffer, plain: Buffer): Deflated {
  // A copy in memory of its own: zlib's is a view of 16 kB, and a small Buffer shares 64 kB with strangers.
  const bytes = Buffer.allocUnsafeSlow(view.length)
  view.copy(bytes)
  return { bytes, plainLength: plain.length, crc: crc32(plain), crcShift: shiftOf(plain.length) }
}

/** `plain` for the middle of a gzip stream. It blocks: for what is no longer than a block or two. */
export const deflatedNow = (plain: Buffer): Deflated => describe(deflateRawSync(plain, compact), plain)

/** The links of pages `from` to `to`, each followed by a comma; none where `to` is below `from`. */
export interface LinkRibbon {
  /** Their bytes: arithmetic alone. */
  length(from: number, to: number): number
  /** Views of sheets, not copies. */
  plain(from: number, to: number): Iterable<Buffer>
  /** Whole blocks compressed, from memory; broken ones plain. */
  blocks(from: number, to: number): Iterable<Promise<Deflated> | Buffer>
  /** Bytes held at present. */
  held(): number
}

/** `bound`: bytes to hold at the most; what lies beyond is made anew for each answer. */
export function createLinkRibbon(baseUrl: string, bound: number): LinkRibbon {
  const prefix = `{"url":${JSON.stringify(pageUrl({ baseUrl, extensions: true }, 0)).slice(0, -2)}`
  const middle = '","label":"'
  const suffix = '","active":false},'
  const fixed = prefix.length + middle.length + suffix.length
  const sheets = new Map<number, Buffer>()
  const blocks = new Map<number, Promise<Deflated>>()
  let held = 0

  /** Bytes of all links up to and with that of page `last`. */
  const upTo = (last: number) => fixed * last + 2 * digitsUpTo(last)

  function sheet(index: number): Buffer {
    const known = sheets.get(index)
    if (known) return known
    const first = index * sheetPages + 1
    let text = ''
    for (let page = first; page < first + sheetPages; page += 1)
      text += prefix + page + middle + page + suffix
    const bytes = Buffer.from(text, 'latin1')
    if (held + bytes.length <= bound) {
      held += bytes.length
      sheets.set(index, bytes)
    }
    return bytes
  }

  function* plain(from: number, to: number) {
    for (let first = from; first <= to; ) {
      const index = Math.floor((first - 1) / sheetPages)
      const last = Math.min((index + 1) * sheetPages, to)
      const begin = upTo(index * sheetPages)
      yield sheet(index).subarray(upTo(first - 1) - begin, upTo(last) - begin)
      first = last + 1
    }
  }

  /** A whole block. It is an eighth of its plain length at the most, and so is what is held of blocks. */
  function block(index: number): Promise<Deflated> {
    const known = blocks.get(index)
    if (known) return known
    const first = index * blockPages + 1
    const bytes = Buffer.concat([...plain(first, first + blockPages - 1)])
    const making = deflate(bytes, compact).then((compressed) => describe(compressed, bytes))
    if (upTo(first + blockPages) <= bound) {
      blocks.set(index, making)
      making.then(
        (made) => {
          held += made.bytes.length
        },
        () => blocks.delete(index),
      )
    }
    return making
  }

  return {
    plain,
    held: () => held,
    length: (from, to) => (to < from ? 0 : upTo(to) - upTo(from - 1)),

    *blocks(from, to) {
      for (let first = from; first <= to; ) {
        const index = Math.floor((first - 1) / blockPages)
        const last = Math.min((index + 1) * blockPages, to)
        if (last - first + 1 === blockPages) yield block(index)
        else yield* plain(first, last)
        first = last + 1
      }
    },
  }
}

/** How many digits the numbers from 1 to `last` have together. */
function digitsUpTo(last: number): number {
  let digits = 0
  for (let first = 1; first <= last; first *= 10) digits += last - first + 1
  return digits
}
