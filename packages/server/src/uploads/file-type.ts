import { FileTypeParser } from 'file-type'
import { errorCode, Fault } from '../core/faults.ts'
import { decodeText, isTextByte } from '../core/stored-type.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { ReceivedBlob, ReceivedFile } from '../storage/blobs/received-file.ts'
import { hasStructure } from './short-signatures.ts'

export interface SniffedType {
  readonly mime: string
  /** Without the dot. */
  readonly ext: string
}

/** How XML, PostScript and Rich Text begin. */
const xmlDeclaration: RegExp = /^<\?xml\s+(?:version|encoding)\s*=/
const postScript: RegExp = /^%!(?:PS-Adobe(?:Font)?-\d|FontType1-\d|PS[ \t]*[\r\n])/
const richText: RegExp = /^\{\\rtf(?:\d|\\)/

/** The formats that are text and have a signature. Each requires more than the letters of the signature, with which a text can begin. */
const formats: readonly { readonly start: RegExp; readonly type: SniffedType }[] = [
  { start: xmlDeclaration, type: { mime: 'application/xml', ext: 'xml' } },
  { start: /^%PDF-\d\.\d[ \t]*(?:[\r\n%]|$)/, type: { mime: 'application/pdf', ext: 'pdf' } },
  { start: /^%!PS-Adobe-\d\.\d +EPSF-\d/, type: { mime: 'application/eps', ext: 'eps' } },
  { start: postScript, type: { mime: 'application/postscript', ext: 'ps' } },
  { start: richText, type: { mime: 'application/rtf', ext: 'rtf' } },
  { start: /^BEGIN:VCARD[ \t]*[\r\n]/, type: { mime: 'text/vcard', ext: 'vcf' } },
  { start: /^BEGIN:VCALENDAR[ \t]*[\r\n]/, type: { mime: 'text/calendar', ext: 'ics' } },
  {
    start: /^WEBVTT(?:[ \t]*(?:[\r\n]|$)|[ \t][\s\S]*-->)/,
    type: { mime: 'text/vtt', ext: 'vtt' },
  },
  {
    start: /^solid [^\r\n]*[\r\n]\s*(?:facet\s+normal|endsolid)\b/,
    type: { mime: 'model/stl', ext: 'stl' },
  },
  {
    start: /^-----BEGIN PGP MESSAGE-----[ \t]*[\r\n]/,
    type: { mime: 'application/pgp-encrypted', ext: 'pgp' },
  },
  {
    start: /^(?:REGEDIT4|Windows Registry Editor Version 5\.00)\r\n\s*(?:\[|;|$)/,
    type: { mime: 'application/x-ms-regedit', ext: 'reg' },
  },
  // An archive of texts. A header has 60 bytes.
  { start: /^!<arch>\n(?:$|[^\n]{58}`\n)/, type: { mime: 'application/x-unix-archive', ext: 'ar' } },
]

/** The type of a text that has the signature of its format (`decodeText`); null for all other texts. */
const textTypeOf = (text: string): SniffedType | null =>
  formats.find(({ start }) => start.test(text))?.type ?? null

/** A comparison that the library makes: these bytes, after the mask, at this offset. */
interface Comparison {
  readonly offset: number
  /** At most four bytes: those of a longer signature that decide almost always. */
  readonly bytes: readonly number[]
  readonly mask: readonly number[]
}

/** Fails all comparisons of the library and records them. */
class Recorder extends FileTypeParser {
  readonly comparisons: Comparison[] = []

  override check(
    signature: readonly number[],
    { offset = 0, mask }: { offset?: number; mask?: readonly number[] } = {},
  ): boolean {
    const bytes = signature.slice(0, 4)
    this.comparisons.push({ offset, bytes, mask: mask ?? bytes.map(() => 0xff) })
    return false
  }
}

/** The library reads another signature, of disk images, in files of more bytes than this. */
const maxSize = 32_768

export type SignatureTest = (file: Uint8Array) => boolean

/**
 * Creates a function that returns false for files in which the library detects no type, and true for all others and for some
 * of these. For such files, such as most texts, the library allocates two buffers, and compares much more. It
 * returns a type only after one of these comparisons was true, so they are read from the library itself.
 */
export async function createSignatureTest(): Promise<SignatureTest> {
  const recorder = new Recorder()
  // `C`, because one comparison is made only after this letter.
  await recorder.fromBuffer(Buffer.alloc(1024, 'C'))
  const atStart = Array.from({ length: 256 }, (_, first) =>
    recorder.comparisons.filter(
      ({ offset, bytes: [byte], mask: [bits = 0] }) => offset === 0 && byte === (first & bits),
    ),
  )
  const later = recorder.comparisons.filter(({ offset }) => offset > 0)
  return (file) =>
    file.byteLength > maxSize ||
    (atStart[file[0] ?? 0] ?? []).some((comparison) => matches(file, comparison)) ||
    later.some((comparison) => matches(file, comparison))
}

/** The library compares bytes after the end of a file as zeros. */
function matches(file: Uint8Array, { offset, bytes, mask }: Comparison): boolean {
  for (let i = 0; i < bytes.length; i += 1)
    if (((file[offset + i] ?? 0) & (mask[i] ?? 0)) !== bytes[i]) return false
  return true
}

/**
 * Whether bytes that begin with the signature are of its format, for a file of `size` bytes. At least 32 bytes follow, and as many as the
 * library reads before it compares the signature; bytes after the end of the file are 0.
 */
type Structure = (bytes: Buffer, size: number) => boolean

const startsWith =
  (pattern: RegExp): Structure =>
  (bytes) =>
    pattern.test(bytes.toString('latin1', 0, 64))
const textAt =
  (offset: number, ...texts: readonly string[]): Structure =>
  (bytes) =>
    texts.some((text) => bytes.toString('latin1', offset, offset + text.length) === text)
/** Each following byte has this value, or is in this range. */
const bytesAt =
  (offset: number, ...values: readonly (number | readonly [number, number])[]): Structure =>
  (bytes) =>
    values.every((value, index) => {
      const [min, max] = typeof value === 'number' ? [value, value] : value
      const byte = bytes[offset + index] ?? 0
      return byte >= min && byte <= max
    })
/** Text has no such byte. */
const binaryWithin =
  (start: number, end: number): Structure =>
  (bytes) =>
    bytes.subarray(start, end).some((byte) => !isTextByte(byte))
/** A length that exceeds the file occurs in files that are cut off and in streams, but is not four letters there. */
const lengthAt =
  (offset: number, read: (bytes: Buffer) => number): Structure =>
  (bytes, size) =>
    read(bytes) <= size || !/^[ -~]{4}$/.test(bytes.toString('latin1', offset, offset + 4))
const box = lengthAt(0, (bytes) => bytes.readUInt32BE(0))
const riff = lengthAt(4, (bytes) => bytes.readUInt32LE(4))

/** Seven bits. */
const seven = [0, 0x7f] as const

const lzh = bytesAt(20, [0, 3])
const lzhMethods = ['lh0', 'lh1', 'lh2', 'lh3', 'lh4', 'lh5', 'lh6', 'lh7', 'lzs', 'lz4', 'lz5', 'lhd']

/**
 * What the formats have behind signatures that consist of letters, by offset and signature. A text, a name in an archive or a file of another
 * format can have the same letters there. A test compares the keys with the signatures of the library.
 */
const structures: ReadonlyMap<string, Structure> = new Map<string, Structure>([
  // The length of the second header.
  ['0 BM', (bytes) => bytes.readUInt32LE(14) >= 12 && bytes.readUInt32LE(14) <= 255],
  // The bytes in the last page of 512, and the number of pages.
  ['0 MZ', (bytes) => bytes.readUInt16LE(2) <= 512 && bytes.readUInt16LE(4) > 0],
  ['0 %!', startsWith(postScript)],
  ['0 GIF', startsWith(/^GIF8[79]a/)],
  // The mark of the first block, or of the end.
  ['0 BZh', textAt(4, '1AY&SY', '\x17\x72\x45\x38\x50\x90')],
  // The version, and a length of four times seven bits.
  ['0 ID3', bytesAt(3, [2, 4], [0, 0xfe], [0, 0xff], seven, seven, seven, seven)],
  ['0 MP+', (bytes) => ((bytes[3] ?? 0) & 0x0f) === 7],
  ['0 MPCK', startsWith(/^MPCK[A-Z]{2}/)],
  // The version of Flash.
  ['1 WS', bytesAt(3, [1, 50])],
  // Channels with or without interlacing, and bytes per channel.
  ['0 FLIF', startsWith(/^FLIF[134ACDQSTacd][012]/)],
  ['0 8BPS', bytesAt(4, 0, [1, 2])],
  ['0 FORM', textAt(8, 'AIFF', 'AIFC')],
  ['0 caff', bytesAt(4, 0)],
  ['0 icns', bytesAt(4, 0)],
  ['0 OggS', bytesAt(4, 0, [0, 7])],
  ['0 MThd', bytesAt(4, 0, 0, 0)],
  ['0 wOFF', lengthAt(8, (bytes) => bytes.readUInt32BE(8))],
  ['0 wOF2', lengthAt(8, (bytes) => bytes.readUInt32BE(8))],
  ['0 DSD ', textAt(4, '\x1c\0\0\0\0\0\0\0')],
  ['0 LZIP', bytesAt(4, [0, 1])],
  // The block STREAMINFO, which has 34 bytes.
  ['0 fLaC', textAt(4, '\0\0\0\x22', '\x80\0\0\x22')],
  ['0 wvpk', bytesAt(9, 4)],
  ['0 %PDF', startsWith(/^%PDF-\d/)],
  ['0 MAC ', (bytes) => bytes.readUInt16LE(4) >= 3_000 && bytes.readUInt16LE(4) < 5_000],
  ['0 SQLi', textAt(0, 'SQLite format 3\0')],
  ['0 Cr24', textAt(5, '\0\0\0')],
  ['0 MSCF', textAt(4, '\0\0\0\0')],
  ['0 ISc(', binaryWithin(4, 16)],
  ['0 !BDN', textAt(8, 'SM')],
  ['0 PAR1', binaryWithin(4, 16)],
  ['0 PARE', binaryWithin(4, 16)],
  ['0 ttcf', bytesAt(4, 0, [1, 2], 0, 0)],
  ['0 regf', binaryWithin(4, 24)],
  ['0 $FL2', textAt(4, '@(#)')],
  ['0 $FL3', textAt(4, '@(#)')],
  ['0 #!AMR', startsWith(/^#!AMR(?:-WB)?(?:[-_]MC1\.0)?\n/)],
  ['0 {\\rtf', startsWith(richText)],
  ['0 IMPM', binaryWithin(4, 32)],
  ...lzhMethods.map((method): [string, Structure] => [`2 -${method}-`, lzh]),
  ['0 ITSF', bytesAt(4, [1, 4], 0, 0, 0)],
  ['0 .RMF', bytesAt(4, 0)],
  ['0 DRACO', bytesAt(5, [0, 9])],
  ['0 <?xml ', startsWith(xmlDeclaration)],
  // Many binary files begin like the textual ones. They have 84 bytes and 50 for each triangle.
  ['0 solid ', (_, size) => size >= 84 && (size - 84) % 50 === 0],
  ['0 AC', bytesAt(6, [0, 6])],
  ['0 070707', startsWith(/^070707[0-7]{26}/)],
  ['0 BLENDER', startsWith(/^BLENDER(?:[-_][Vv]\d{3}|\d\d[-_]\d\d[Vv]\d{4})/)],
  ['0 !<arch>', bytesAt(7, 0x0a)],
  ['0 WEBVTT', startsWith(/^WEBVTT[ \t]*[\r\n]/)],
  ...['free', 'mdat', 'moov', 'wide', 'ftyp'].map((type): [string, Structure] => [`4 ${type}`, box]),
  ['0 gimp xcf ', bytesAt(13, 0)],
  ...['WEBP', 'AVI', 'WAVE', 'QLCM'].map((type): [string, Structure] => [`8 ${type}`, riff]),
  ['12 DSD ', bytesAt(4, 0)],
  // The profile's length.
  ['36 acsp', box],
  // The type of the first header.
  ['7 **ACE', bytesAt(4, 0)],
  ['6 VCARD', bytesAt(11, [0x0a, 0x0d])],
  ['6 VCALENDAR', bytesAt(15, [0x0a, 0x0d])],
  ['0 FUJIFILMCCD-RAW', startsWith(/^FUJIFILMCCD-RAW \d{4}/)],
  ['0 Extended Module:', bytesAt(37, 0x1a)],
  ['0 Creative Voice File', bytesAt(19, 0x1a)],
  ['44 SCRM', bytesAt(28, 0x1a)],
  ['60 BOOKMOBI', binaryWithin(0, 60)],
  // The group of the first element, in little endian.
  ['128 DICM', textAt(132, '\x02\0')],
  // The mode of the first file.
  ['257 ustar', (bytes) => /^[ 0-7]+[ \0]*$/.test(bytes.toString('latin1', 100, 108))],
  ['0 -----BEGIN PGP MESSAGE-----', bytesAt(27, [0x0a, 0x0d])],
])

/** Packets of a transport stream have 188 bytes, on Blu-ray discs with a prefix of four, and begin with this byte. */
function isTransportStream(head: Uint8Array): boolean {
  const isStream = (start: number, length: number) =>
    [1, 2, 3, 4].every((packet) => {
      const at = start + packet * length
      return packet > 2 && at >= head.byteLength ? true : head[at] === 0x47
    })
  return isStream(0, 188) || isStream(4, 192)
}

interface CheckOptions {
  readonly offset?: number
  readonly mask?: readonly number[]
  readonly encoding?: string
}

declare module 'file-type' {
  interface FileTypeParser {
    readonly buffer: Uint8Array<ArrayBuffer>
    check(signature: readonly number[], options?: CheckOptions): boolean
    checkString(signature: string, options?: CheckOptions): boolean
  }
}

/**
 * Requires the structure behind signatures of letters. It compares the first byte before the library compares a whole signature: the
 * library tries nearly 200 signatures and allocates an array for each.
 */
export class SignatureParser extends FileTypeParser {
  readonly #size: number

  /** `size` is that of the file, of which the parser may read only the head. */
  constructor(size: number) {
    super()
    this.#size = size
  }

  override check(signature: readonly number[], options?: CheckOptions): boolean {
    const offset = options?.offset ?? 0
    if (options?.mask === undefined && signature[0] !== this.buffer[offset]) return false
    if (!super.check(signature, options)) return false
    const structure = structures.get(`${offset} ${String.fromCharCode(...signature)}`)
    return structure === undefined || structure(Buffer.from(this.buffer.buffer), this.#size)
  }

  override checkString(signature: string, options?: CheckOptions): boolean {
    if (options?.encoding === undefined && signature.charCodeAt(0) !== this.buffer[options?.offset ?? 0])
      return false
    return super.checkString(signature, options)
  }
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
  const text = decodeText(file.head)
  // Few formats are text. All other signatures of letters may be the first words of a text.
  if (text !== null) return textTypeOf(text)
  const byHead = await orNull(new SignatureParser(file.size).fromBuffer(file.head))
  if (byHead?.mime === 'video/mp2t' && !isTransportStream(file.head)) return null
  if (byHead && !hasStructure(byHead.mime, file.head, file.size)) return null
  if ('bytes' in file || file.size === file.head.byteLength) return byHead
  if (byHead !== null && !isContainer(file.head)) return byHead
  const whole = await sniffWhole(blobs, file)
  if (whole !== 'unread')
    return whole && !hasStructure(whole.mime, file.head, file.size) ? null : (whole ?? byHead)
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
      return (await new SignatureParser(blob.size).fromBlob(bytes)) ?? null
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
