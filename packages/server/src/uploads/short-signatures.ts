/** Whether bytes that begin with a short signature go on as its format does. `size` is that of the file, of which `head` is the beginning. */
type Structure = (head: Buffer, size: number) => boolean

/**
 * Types whose signature has two or three bytes, or such that other binary files begin so too, by the signature in hexadecimal digits. A test
 * compares them with random bytes behind the signatures.
 */
const structures: readonly (readonly [mime: string, signature: string, Structure])[] = [
  ['image/x-icon', '0000', isIconDirectory],
  ['video/MP1S', '000001ba', isProgramStream],
  ['video/MP2P', '000001ba', isProgramStream],
  ['video/mpeg', '000001b3', isSequence],
  ['font/ttf', '00010000', isFont],
  ['audio/vnd.dolby.dd-raw', '0b77', isDolby],
  // Disk images begin with a stream of zlib, as many other files do, whose first bytes are zeros.
  ['application/x-apple-diskimage', '7801', (head) => head.toString('hex', 2, 7) === '730d626260'],
  ['application/x-compress', '1f9d', isCompress],
  // It has no further header.
  ['application/x-compress', '1fa0', () => false],
  ['application/gzip', '1f8b08', isGzip],
  ['application/x-cpio', 'c771', isCpio],
  ['application/x-arj', '60ea', isArj],
  ['image/vnd.ms-photo', '4949bc', isJpegXr],
  ['audio/mpeg', 'ff', isAudioFrame],
  ['audio/aac', 'ff', isAudioFrame],
]

/** False for a file that has the signature of the type that was detected by it, and not the structure behind it. */
export function hasStructure(detected: string, head: Uint8Array, size: number): boolean {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength)
  const start = bytes.toString('hex', 0, 4)
  const found = structures.find(([mime, signature]) => mime === detected && start.startsWith(signature))
  if (found === undefined) return true
  try {
    return found[2](bytes, size)
  } catch (error) {
    // The file ends before.
    if (error instanceof RangeError) return false
    throw error
  }
}

const entrySize = 16
/** The sizes of the headers of bitmaps, and how a PNG begins. */
const pictureStarts: ReadonlySet<number> = new Set([12, 40, 52, 56, 64, 108, 124, 0x474e5089])
const iconDepths: ReadonlySet<number> = new Set([0, 1, 2, 4, 8, 16, 24, 32])

/** A directory of icons or cursors: each picture lies in the file behind it, and those in the head begin as pictures do. */
function isIconDirectory(head: Buffer, size: number): boolean {
  const [isIcon, count] = [head[2] === 1, head.readUInt16LE(4)]
  const end = 6 + count * entrySize
  if (count === 0 || end > size) return false
  const inHead = Math.min(count, Math.floor((head.byteLength - 6) / entrySize))
  for (let at = 6; at < 6 + inHead * entrySize; at += entrySize) {
    const [length, position] = [head.readUInt32LE(at + 8), head.readUInt32LE(at + 12)]
    if (length === 0 || position < end || position + length > size) return false
    if (isIcon && !(head.readUInt16LE(at + 4) <= 1 && iconDepths.has(head.readUInt16LE(at + 6)))) return false
    if (position + 4 <= head.byteLength && !pictureStarts.has(head.readUInt32LE(position))) return false
  }
  return inHead > 0
}

/** The clock of a pack of MPEG-1 or MPEG-2 (ISO 13818-1, 2.5.3.3), whose marker bits are 1. */
function isProgramStream(head: Buffer): boolean {
  const [first, third, fifth] = [head.readUInt8(4), head.readUInt8(6), head.readUInt8(8)]
  const isFirst = first >> 4 === 2 && (first & 1) === 1 && (third & 1) === 1 && (fifth & 1) === 1
  const isSecond = first >> 6 === 1 && (first & 4) === 4 && (third & 4) === 4 && (fifth & 4) === 4
  return (isFirst || isSecond) && (isFirst ? head.readUInt8(9) >> 7 === 1 : (head.readUInt8(9) & 1) === 1)
}

/** The size, the proportions, the rate and a marker bit of a video (ISO 11172-2, 2.4.2.3). */
function isSequence(head: Buffer): boolean {
  const size = head.readUIntBE(4, 3)
  const [proportions, rate] = [head.readUInt8(7) >> 4, head.readUInt8(7) & 15]
  const isRate = rate >= 1 && rate <= 8
  return (
    size >> 12 > 0 &&
    (size & 0xfff) > 0 &&
    proportions >= 1 &&
    proportions <= 14 &&
    isRate &&
    (head.readUInt8(10) & 0x20) > 0
  )
}

/** The numbers of tables and for their search, and the names of the first tables. */
function isFont(head: Buffer): boolean {
  const count = head.readUInt16BE(4)
  if (count === 0 || count > 255 || head.byteLength < 12 + count * 16) return false
  return Array.from({ length: count }, (_, at) => head.toString('latin1', 12 + at * 16, 16 + at * 16)).every(
    (tag) => /^[ -~]{4}$/.test(tag),
  )
}

const dolbyRates = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640]

/** A frame of AC-3 or E-AC-3 (ETSI TS 102 366) that another one, or the end of the file, follows. */
function isDolby(head: Buffer, size: number): boolean {
  const version = head.readUInt8(5) >> 3
  const code = head.readUInt8(4)
  const rate = dolbyRates[(code & 63) >> 1] ?? 0
  const lengths = [rate * 4, 2 * (Math.floor((rate * 96_000) / 44_100) + (code & 1)), rate * 6]
  const isNew = version > 10 && version <= 16
  const length = isNew
    ? 2 * ((head.readUInt16BE(2) & 0x7ff) + 1)
    : version <= 10
      ? (lengths[code >> 6] ?? 0)
      : 0
  return length > 7 && isFollowed(head, size, { length, mask: 0xffff })
}

/** Whether what begins with the same bits, or a tag, or the end of the file follows a frame of this length. */
function isFollowed(
  head: Buffer,
  size: number,
  { length, mask }: { readonly length: number; readonly mask: number },
): boolean {
  if (length === size) return true
  // Nearly all frames are shorter than the head.
  if (length + 2 > head.byteLength) return false
  return (
    (head.readUInt16BE(length) & mask) === (head.readUInt16BE(0) & mask) ||
    ['TAG', 'ID3'].includes(head.toString('latin1', length, length + 3))
  )
}

/** The bits of a code, and two that are not used. */
function isCompress(head: Buffer): boolean {
  const flags = head.readUInt8(2)
  return (flags & 0x60) === 0 && (flags & 0x1f) >= 9 && (flags & 0x1f) <= 16
}

/** The flags, of which three are not used, and the system (RFC 1952, 2.3.1). */
function isGzip(head: Buffer): boolean {
  const system = head.readUInt8(9)
  return head.readUInt8(3) < 32 && (system <= 13 || system === 255)
}

const fileKinds: ReadonlySet<number> = new Set([0o01, 0o02, 0o04, 0o06, 0o10, 0o12, 0o14])

/** The kind of the first file, and its name, which ends with a zero. */
function isCpio(head: Buffer): boolean {
  const nameEnd = 26 + head.readUInt16LE(20)
  return (
    fileKinds.has(head.readUInt16LE(6) >> 12) &&
    nameEnd > 27 &&
    nameEnd < 1_100 &&
    head.readUInt8(nameEnd - 1) === 0
  )
}

/** The sizes of the header of an archive, and its kind. */
function isArj(head: Buffer): boolean {
  const [size, first] = [head.readUInt16LE(2), head.readUInt8(4)]
  return size >= 30 && size <= 2_600 && first >= 30 && first <= size && head.readUInt8(10) === 2
}

/** The version, and the position of the first directory. */
function isJpegXr(head: Buffer, size: number): boolean {
  const position = head.readUInt32LE(4)
  return head.readUInt8(3) <= 1 && position >= 8 && position < size
}

/** Kilobits per second by the number in the header: of MPEG-1 for each layer, and of MPEG-2. */
const rates = {
  first: [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  ],
  second: [
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  ],
} as const
const frequencies = [44_100, 48_000, 32_000] as const

/** Frames of ADTS or MPEG audio. Before the second one there may be other bytes, if a file was cut. */
function isAudioFrame(head: Buffer, size: number): boolean {
  const first = frameAt(head, 0)
  if (first === null) return false
  if (isFollowed(head, size, first)) return true
  for (let at = 1; at + 4 <= head.byteLength; at += 1) {
    if ((head.readUInt16BE(at) & first.mask) !== (head.readUInt16BE(0) & first.mask)) continue
    const frame = frameAt(head, at)
    if (frame && isFollowed(head.subarray(at), size - at, frame)) return true
  }
  return false
}

/** The length of a frame, and the bits that those of a file share; null if its header is none. */
function frameAt(head: Buffer, at: number): { readonly length: number; readonly mask: number } | null {
  const [sync, third] = [head.readUInt16BE(at), head.readUInt8(at + 2)]
  const [version, layer] = [(sync >> 3) & 3, 4 - ((sync >> 1) & 3)]
  if (layer === 4) {
    const length = (head.readUIntBE(at + 3, 3) >> 5) & 0x1fff
    const isFrame = (sync & 0xfff0) === 0xfff0 && ((third >> 2) & 15) < 13 && length > 7
    return isFrame ? { length, mask: 0xfff6 } : null
  }
  const frequency = frequencies[(third >> 2) & 3]
  const table = version === 3 ? rates.first : rates.second
  const rate = table[layer - 1]?.[(third >> 4) - 1]
  if (version === 1 || rate === undefined || frequency === undefined) return null
  const perSecond = frequency / (version === 3 ? 1 : version === 2 ? 2 : 4)
  const padding = (third >> 1) & 1
  if (layer === 1) return { length: 4 * (Math.floor((12 * rate * 1000) / perSecond) + padding), mask: 0xfffe }
  const samples = layer === 3 && version !== 3 ? 72 : 144
  return { length: Math.floor((samples * rate * 1000) / perSecond) + padding, mask: 0xfffe }
}
