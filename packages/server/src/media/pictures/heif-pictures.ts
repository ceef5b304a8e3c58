import { type Box, boxAt, childOf, childrenOf, dataOf, type LoadedBoxes, loadBox } from './metadata/boxes.ts'
import { withFile } from './metadata/byte-source.ts'
import { type ByteSource, UnreadableFile } from './metadata/pieces.ts'

/** The pictures of a HEIF file (ISO 23008-12), as far as heif-convert must be guided. */
export interface HeifPictures {
  readonly hasAlpha: boolean
  /** Positions of bytes, and their values that hide all pictures but the primary one: heif-convert writes each picture that is not hidden. */
  readonly hiding: readonly HidingByte[]
}

export interface HidingByte {
  readonly position: number
  readonly value: number
}

const none: HeifPictures = { hasAlpha: false, hiding: [] }

/** Bytes of the list. */
const maxList = 16 * 1024 * 1024

/** Items that are no pictures. */
const otherKinds: ReadonlySet<string> = new Set(['Exif', 'mime', 'uri '])

/** References by which an item is a part of another one, and no picture of its own: thumbnails, and masks such as alpha and depth. */
const partReferences: ReadonlySet<string> = new Set(['thmb', 'auxl'])

/** What says that a mask is transparency (`auxC`). */
const alphaNames = ['urn:mpeg:mpegB:cicp:systems:auxiliary:alpha', 'urn:mpeg:hevc:2015:auxid:1\0']

/** Reads the list of pictures. A file of another form has nothing to hide; heif-convert decides whether it is readable. */
export async function readHeifPictures(path: string): Promise<HeifPictures> {
  try {
    return await withFile(path, async (source) => {
      const list = await findList(source)
      return list === null ? none : readList(await loadBox(source, list, maxList), list)
    })
  } catch (error) {
    if (error instanceof UnreadableFile || error instanceof RangeError) return none
    throw error
  }
}

async function findList(source: ByteSource): Promise<Box | null> {
  for (let position = 0; position < source.size; ) {
    const header = await source.read(position, Math.min(16, source.size - position))
    const box = boxAt(header, position, source.size)
    if (box === null || box.type === 'meta') return box
    position = box.end
  }
  return null
}

function readList(loaded: LoadedBoxes, list: Box): HeifPictures {
  const boxes = new Map(childrenOf(loaded, list, 4).map((box) => [box.type, box]))
  const [primary, information, references, properties] = ['pitm', 'iinf', 'iref', 'iprp'].map((type) =>
    boxes.get(type),
  )
  if (!primary || !information) return none
  const primaryId = readId(dataOf(loaded, primary))
  const parts = references ? readParts(loaded, references) : new Set()
  const hiding: HidingByte[] = []
  for (const box of childrenOf(loaded, information, dataOf(loaded, information)[0] === 0 ? 6 : 8)) {
    const entry = dataOf(loaded, box)
    const [version = 0, , , flags = 0] = entry
    if (box.type !== 'infe' || version < 2) continue
    const idSize = version === 2 ? 2 : 4
    const id = entry.readUIntBE(4, idSize)
    const kind = entry.toString('latin1', 4 + idSize + 2, 4 + idSize + 6)
    const isHidden = (flags & 1) === 1
    if (id === primaryId || isHidden || parts.has(id) || otherKinds.has(kind)) continue
    hiding.push({ position: box.data + 3, value: flags | 1 })
  }
  return { hasAlpha: properties !== undefined && hasAlpha(loaded, properties), hiding }
}

/** The id after the version and the flags of a box. */
const readId = (data: Buffer): number => data.readUIntBE(4, data[0] === 0 ? 2 : 4)

/** The items that are parts of others. */
function readParts(loaded: LoadedBoxes, references: Box): ReadonlySet<number> {
  const idSize = dataOf(loaded, references)[0] === 0 ? 2 : 4
  return new Set(
    childrenOf(loaded, references, 4)
      .filter(({ type }) => partReferences.has(type))
      .map((box) => dataOf(loaded, box).readUIntBE(0, idSize)),
  )
}

function hasAlpha(loaded: LoadedBoxes, properties: Box): boolean {
  const list = childOf(loaded, properties, 'ipco')
  const masks = list === null ? [] : childrenOf(loaded, list).filter(({ type }) => type === 'auxC')
  return masks.some((box) => alphaNames.some((name) => dataOf(loaded, box).includes(name)))
}
