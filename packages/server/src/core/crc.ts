import { crc32 } from 'node:zlib'

// CRC-32C and CRC-64/NVME, eight bytes at a time ("slicing-by-8"), because Node has only CRC-32. A value of 64 bits is two of 32: BigInt is slow.
// A DataView never returns undefined, and is as fast as an array. The polynomials are reflected: https://reveng.sourceforge.io/crc-catalogue/all.htm

const castagnoli = 0x82f6_3b78
const nvme = { high: 0x9a6c_9329, low: 0xac4b_c9b5 }

/** A checksum of bytes that arrive one after another. */
export interface RunningChecksum {
  update(bytes: Uint8Array): void
  /** The value in network order. */
  digest(): Buffer
}

/** Tables of 256 values of 4 bytes. Table `n` has the value of each byte with `n` zero bytes after it. */
const tableLength = 1024

const newTables = () => new DataView(new ArrayBuffer(8 * tableLength))

function tables32(): DataView {
  const tables = newTables()
  for (let byte = 0; byte < 256; byte += 1) {
    let value = byte
    for (let bit = 0; bit < 8; bit += 1) value = (value >>> 1) ^ (value & 1 ? castagnoli : 0)
    tables.setUint32(byte * 4, value)
  }
  for (let at = tableLength; at < tables.byteLength; at += 4) {
    const value = tables.getUint32(at - tableLength)
    tables.setUint32(at, (value >>> 8) ^ tables.getUint32((value & 255) * 4))
  }
  return tables
}

function tables64(): { readonly low: DataView; readonly high: DataView } {
  const [lows, highs] = [newTables(), newTables()]
  for (let byte = 0; byte < 256; byte += 1) {
    let [low, high] = [byte, 0]
    for (let bit = 0; bit < 8; bit += 1) {
      const isOdd = low & 1
      low = ((low >>> 1) | (high << 31)) ^ (isOdd ? nvme.low : 0)
      high = (high >>> 1) ^ (isOdd ? nvme.high : 0)
    }
    lows.setUint32(byte * 4, low)
    highs.setUint32(byte * 4, high)
  }
  for (let at = tableLength; at < lows.byteLength; at += 4) {
    const [low, high] = [lows.getUint32(at - tableLength), highs.getUint32(at - tableLength)]
    const first = (low & 255) * 4
    lows.setUint32(at, ((low >>> 8) | (high << 24)) ^ lows.getUint32(first))
    highs.setUint32(at, (high >>> 8) ^ highs.getUint32(first))
  }
  return { low: lows, high: highs }
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  new DataView(buffer, byteOffset, byteLength)

/** The offset in table `n` of a byte of a word. */
const place = (n: number, word: number, shift: number): number =>
  n * tableLength + ((word >>> shift) & 255) * 4

/** Created when they are first needed. */
const known: { for32?: DataView; for64?: ReturnType<typeof tables64> } = {}

function knownTables32(): DataView {
  known.for32 ??= tables32()
  return known.for32
}

function knownTables64(): ReturnType<typeof tables64> {
  known.for64 ??= tables64()
  return known.for64
}

export class Crc32c implements RunningChecksum {
  readonly #tables = knownTables32()
  #value = -1

  update(bytes: Uint8Array): void {
    const t = this.#tables
    const view = viewOf(bytes)
    let value = this.#value
    let at = 0
    for (const end = view.byteLength - 8; at <= end; at += 8) {
      const one = value ^ view.getInt32(at, true)
      const two = view.getInt32(at + 4, true)
      value =
        t.getInt32(place(7, one, 0)) ^
        t.getInt32(place(6, one, 8)) ^
        t.getInt32(place(5, one, 16)) ^
        t.getInt32(place(4, one, 24)) ^
        t.getInt32(place(3, two, 0)) ^
        t.getInt32(place(2, two, 8)) ^
        t.getInt32(place(1, two, 16)) ^
        t.getInt32(place(0, two, 24))
    }
    for (; at < view.byteLength; at += 1)
      value = (value >>> 8) ^ t.getInt32(place(0, value ^ view.getUint8(at), 0))
    this.#value = value
  }

  digest(): Buffer {
    const digest = Buffer.alloc(4)
    digest.writeInt32BE(~this.#value)
    return digest
  }
}

export class Crc64Nvme implements RunningChecksum {
  readonly #tables = knownTables64()
  #low = -1
  #high = -1

  update(bytes: Uint8Array): void {
    const { low: l, high: h } = this.#tables
    const view = viewOf(bytes)
    let [low, high] = [this.#low, this.#high]
    let at = 0
    for (const end = view.byteLength - 8; at <= end; at += 8) {
      const one = low ^ view.getInt32(at, true)
      const two = high ^ view.getInt32(at + 4, true)
      const [a, b, c, d] = [place(7, one, 0), place(6, one, 8), place(5, one, 16), place(4, one, 24)]
      const [e, f, g, i] = [place(3, two, 0), place(2, two, 8), place(1, two, 16), place(0, two, 24)]
      low =
        l.getInt32(a) ^
        l.getInt32(b) ^
        l.getInt32(c) ^
        l.getInt32(d) ^
        l.getInt32(e) ^
        l.getInt32(f) ^
        l.getInt32(g) ^
        l.getInt32(i)
      high =
        h.getInt32(a) ^
        h.getInt32(b) ^
        h.getInt32(c) ^
        h.getInt32(d) ^
        h.getInt32(e) ^
        h.getInt32(f) ^
        h.getInt32(g) ^
        h.getInt32(i)
    }
    for (; at < view.byteLength; at += 1) {
      const first = place(0, low ^ view.getUint8(at), 0)
      low = ((low >>> 8) | (high << 24)) ^ l.getInt32(first)
      high = (high >>> 8) ^ h.getInt32(first)
    }
    this.#low = low
    this.#high = high
  }

  digest(): Buffer {
    const digest = Buffer.alloc(8)
    digest.writeInt32BE(~this.#high)
    digest.writeInt32BE(~this.#low, 4)
    return digest
  }
}

export class Crc32 implements RunningChecksum {
  #value = 0

  update(bytes: Uint8Array): void {
    this.#value = crc32(bytes, this.#value)
  }

  digest(): Buffer {
    const digest = Buffer.alloc(4)
    digest.writeUInt32BE(this.#value)
    return digest
  }
}

/** The width of a checksum and its polynomial, reflected. */
export interface CrcKind {
  readonly bits: number
  readonly polynomial: bigint
}

export const crcKinds = {
  CRC32: { bits: 32, polynomial: 0xedb8_8320n },
  CRC32C: { bits: 32, polynomial: BigInt(castagnoli) },
  CRC64NVME: { bits: 64, polynomial: (BigInt(nvme.high) << 32n) | BigInt(nvme.low) },
} as const satisfies Readonly<Record<string, CrcKind>>

/** The checksum of concatenated bytes of which these are the checksums and the lengths. */
export function combineCrcs(
  { bits, polynomial }: CrcKind,
  parts: readonly { readonly value: Uint8Array; readonly size: number }[],
): Buffer {
  const one = 1n << BigInt(bits - 1)
  function multiply(a: bigint, b: bigint): bigint {
    let [product, shifted] = [0n, b]
    for (let bit = one; bit > 0n; bit >>= 1n) {
      if (a & bit) product ^= shifted
      shifted = shifted & 1n ? (shifted >> 1n) ^ polynomial : shifted >> 1n
    }
    return product
  }
  /** The factor of `length` appended bytes. Nearly all parts have the same length. */
  const factors = new Map<number, bigint>()
  function factorOf(length: number): bigint {
    let [power, factor] = [one >> 8n, one]
    for (let rest = length; rest > 0; rest = Math.floor(rest / 2)) {
      if (rest % 2 === 1) factor = multiply(power, factor)
      power = multiply(power, power)
    }
    factors.set(length, factor)
    return factor
  }
  let whole = 0n
  for (const { value, size } of parts)
    whole =
      multiply(factors.get(size) ?? factorOf(size), whole) ^
      BigInt(`0x0${Buffer.from(value).toString('hex')}`)
  return Buffer.from(whole.toString(16).padStart(bits / 4, '0'), 'hex')
}
