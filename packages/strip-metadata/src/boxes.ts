import { usedLength } from './box-lengths.ts'
import { type ByteSource, type Edit, maxTable, type Range, UnreadableFile } from './pieces.ts'

// Files of boxes (ISO 14496-12): MP4, MOV, HEIC and AVIF.

/** A box; `start` to `end` includes its header, `data` is the position after the header. */
export interface Box extends Range {
  readonly type: string
  readonly data: number
}

/** A box and the boxes in it, in memory. Positions are those of the file. */
export interface LoadedBoxes {
  /** The bytes of the file from `base` on. */
  readonly bytes: Buffer
  readonly base: number
}

/** The header of a box at `position`; null if there is none. `end` is the position after its parent. */
export function boxAt(header: Buffer, position: number, end: number): Box | null {
  if (header.byteLength < 8) return null
  const short = header.readUInt32BE(0)
  const type = header.toString('latin1', 4, 8)
  if (short === 1 && header.byteLength < 16) return null
  const isLong = short === 1
  const size = isLong ? Number(header.readBigUInt64BE(8)) : short === 0 ? end - position : short
  const data = position + (isLong ? 16 : 8)
  return position + size < data || position + size > end
    ? null
    : { type, start: position, data, end: position + size }
}

/** The boxes of a range. Throws UnreadableFile if they do not fill it; QuickTime ends some lists with four zeros. */
function boxesIn({ bytes, base }: LoadedBoxes, { start, end }: Range): Box[] {
  const boxes: Box[] = []
  for (let position = start; position < end; ) {
    const rest = bytes.subarray(position - base, end - base)
    if (rest.byteLength < 8 && rest.every((byte) => byte === 0)) return boxes
    const box = boxAt(rest, position, end)
    if (box === null) throw new UnreadableFile('a box ends after its parent')
    if (boxes.length >= maxTable) throw new UnreadableFile('a box has too many boxes')
    boxes.push(box)
    position = box.end
  }
  return boxes
}

/** The data of a box. */
export const dataOf = ({ bytes, base }: LoadedBoxes, { data, end }: Box): Buffer =>
  bytes.subarray(data - base, end - base)

/** The boxes in a box, `skipped` bytes after its header. */
export const childrenOf = (loaded: LoadedBoxes, { data, end }: Box, skipped = 0): Box[] => {
  if (data + skipped > end) throw new UnreadableFile('a box is too short')
  return boxesIn(loaded, { start: data + skipped, end })
}

/** The only box of this type; null if there is none. Decoders differ on which of two they use, so two throw UnreadableFile. */
export function childOf(loaded: LoadedBoxes, parent: Box, type: string): Box | null {
  const [box = null, ...more] = childrenOf(loaded, parent).filter((child) => child.type === type)
  if (more.length > 0) throw new UnreadableFile(`the box ${type} is there twice`)
  return box
}

/** Loads a box. Throws UnreadableFile if it is larger than `limit` bytes. */
export async function loadBox(source: ByteSource, box: Box, limit: number): Promise<LoadedBoxes> {
  if (box.end - box.start > limit) throw new UnreadableFile(`the box ${box.type} is too large`)
  return { bytes: await source.read(box.start, box.end - box.start), base: box.start }
}

/** Collects the edits of loaded boxes. Edits that would change nothing are left out. */
export class BoxEdits {
  readonly edits: Edit[] = []
  readonly #loaded: LoadedBoxes

  constructor(loaded: LoadedBoxes) {
    this.#loaded = loaded
  }

  replace(start: number, bytes: Uint8Array): void {
    const { bytes: all, base } = this.#loaded
    if (all.subarray(start - base, start - base + bytes.byteLength).equals(bytes)) return
    this.edits.push({ start, end: start + bytes.byteLength, bytes })
  }

  clear({ start, end }: Range): void {
    const { bytes, base } = this.#loaded
    if (bytes.subarray(start - base, end - base).some((byte) => byte !== 0))
      this.edits.push({ start, end, bytes: null })
  }

  /** Clears what decoders do not use at the end of a box. */
  trim(box: Box): void {
    const length = usedLength(box.type, dataOf(this.#loaded, box))
    if (length !== null) this.clear({ start: box.data + length, end: box.end })
  }

  /** Turns a box into free space. */
  free({ start, data, end }: Box): void {
    this.replace(start + 4, freeType)
    this.clear({ start: data, end })
  }
}

/** The type of a box without content. */
export const freeType = Buffer.from('free', 'latin1')
