import { promisify } from 'node:util'
import { constants, crc32, deflateRaw, deflateRawSync } from 'node:zlib'
import { crc32Shift } from '../../core/crc32.ts'
import { pageUrl } from '../../core/page-links.ts'

// A page links every page (docs/interface.md L7), so its answer grows with the bucket; but the link of page 7 that is
// not the current page reads the same in every answer. So these bytes are made once, and every answer is written from
// them. Within the ribbon's bound, no request does work that grows with the number of pages but the writing of bytes.

const deflate = promisify(deflateRaw)

/** Pages to a sheet, the piece in which plain links are made and written: 350 kB. */
const sheetPages = 4096

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
  return { bytes, plainLength: plain.length, crc: crc32(plain), crcShift: crc32Shift(plain.length) }
}

/** `plain` for the middle of a gzip stream. It blocks: for what is no longer than a block or two. */
export const deflatedNow = (plain: Buffer): Deflated => describe(deflateRawSync(plain, compact), plain)

/** A whole block; `shared` tells whether the ribbon holds it for all answers. */
interface Block extends Deflated {
  readonly shared: boolean
}

/** The links of pages `from` to `to`, each followed by a comma; none where `to` is below `from`. */
export interface PageLinkCache {
  /** Their bytes: arithmetic alone. */
  length(from: number, to: number): number
  /** Views of sheets, not copies, within the bound. */
  plain(from: number, to: number): Iterable<Buffer>
  /** Whole blocks compressed, from memory; broken ones plain. */
  blocks(from: number, to: number): Iterable<Promise<Block> | Buffer>
  /** Bytes held at present. */
  held(): number
}

/** `bound`: plain bytes to hold at the most, and a tenth of it compressed; links beyond it are made anew for each answer. */
export function createPageLinkCache(baseUrl: string, bound: number): PageLinkCache {
  const prefix = `{"url":${JSON.stringify(pageUrl({ baseUrl, extensions: true }, 0)).slice(0, -2)}`
  const middle = '","label":"'
  const suffix = '","active":false},'
  const fixed = prefix.length + middle.length + suffix.length
  const sheets = new Map<number, Buffer>()
  const blocks = new Map<number, Promise<Block>>()
  let held = 0

  /** Bytes of all links up to and with that of page `last`. */
  const upTo = (last: number) => fixed * last + 2 * digitsUpTo(last)

  function made(from: number, to: number): Buffer {
    let text = ''
    for (let page = from; page <= to; page += 1) text += prefix + page + middle + page + suffix
    return Buffer.from(text, 'latin1')
  }

  /** Kept, where it lies within the bound: most buckets need none beyond it. */
  function sheet(index: number): Buffer | undefined {
    const first = index * sheetPages + 1
    const last = first + sheetPages - 1
    if (!sheets.has(index) && upTo(last) <= bound) {
      sheets.set(index, made(first, last))
      held += upTo(last) - upTo(first - 1)
    }
    return sheets.get(index)
  }

  function* plain(from: number, to: number) {
    for (let first = from; first <= to; ) {
      const index = Math.floor((first - 1) / sheetPages)
      const last = Math.min((index + 1) * sheetPages, to)
      const begin = upTo(index * sheetPages)
      yield sheet(index)?.subarray(upTo(first - 1) - begin, upTo(last) - begin) ?? made(first, last)
      first = last + 1
    }
  }

  async function block(index: number): Promise<Block> {
    const first = index * blockPages + 1
    const last = first + blockPages - 1
    const bytes = Buffer.concat([...plain(first, last)])
    return { ...describe(await deflate(bytes, compact), bytes), shared: upTo(last) <= bound }
  }

  /** Kept under the same bound of plain bytes, so that what is held of blocks is a tenth of it at the most. */
  function keptBlock(index: number): Promise<Block> {
    const known = blocks.get(index)
    if (known) return known
    const making = block(index)
    if (upTo((index + 1) * blockPages) <= bound) {
      blocks.set(index, making)
      making.then(
        ({ bytes }) => {
          held += bytes.length
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
        if (last - first + 1 === blockPages) yield keptBlock(index)
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
