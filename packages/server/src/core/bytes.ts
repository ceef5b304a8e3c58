/**
 * Values that are added and removed constantly, each with a small number as its key; a removed key is used again.
 *
 * A Set or a Map would keep removed values in memory. When V8 replaces the table of a Set, as `clear` does too, the old table refers to the
 * new one. Once a replaced table is in the old generation, it keeps all later tables and their values in memory until the next major
 * collection. The slab itself does not shrink: it keeps a slot for each value of its largest size.
 */
export interface Slab<Value extends object> {
  /** The number of values. */
  size(): number
  /** Returns the key of the value. */
  add(value: Value): number
  /** Returns the removed value; undefined if there is none with this key. */
  remove(key: number): Value | undefined
  /** All values. They may be removed during the iteration. */
  values(): IterableIterator<Value>
  clear(): void
}

export function createSlab<Value extends object>(): Slab<Value> {
  const slots: (Value | undefined)[] = []
  const unusedKeys: number[] = []

  return {
    size: () => slots.length - unusedKeys.length,

    add(value) {
      const key = unusedKeys.pop() ?? slots.length
      slots[key] = value
      return key
    },

    remove(key) {
      const value = slots[key]
      if (value === undefined) return undefined
      slots[key] = undefined
      unusedKeys.push(key)
      return value
    },

    *values() {
      for (const value of slots) if (value !== undefined) yield value
    },

    clear() {
      slots.length = 0
      unusedKeys.length = 0
    },
  }
}

/** x⁰ in the reflected representation that CRC-32 uses. */
const one = 0x8000_0000
const polynomial = 0xedb8_8320

/** a · b modulo CRC-32's polynomial, as zlib's multmodp. */
function multiply(a: number, b: number): number {
  let product = 0
  let shifted = b
  for (let bit = one; bit !== 0; bit >>>= 1) {
    if (a & bit) product ^= shifted
    shifted = shifted & 1 ? (shifted >>> 1) ^ polynomial : shifted >>> 1
  }
  return product >>> 0
}

/** The factor that `length` appended bytes multiply a CRC-32 by: x^(8 · length) modulo the polynomial. O(log length). */
export function crc32Shift(length: number): number {
  let power = one >>> 8
  let shift = one
  for (let rest = length; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) shift = multiply(power, shift)
    power = multiply(power, power)
  }
  return shift
}

/** The CRC-32 of two concatenated byte sequences, given their CRCs and the `crc32Shift` of the second one's length. */
export const combineCrc32 = (first: number, second: number, shiftOfSecond: number): number =>
  (multiply(shiftOfSecond, first) ^ second) >>> 0

/** FNV-1a with a final mix: 32 bits, each of which depends on every character. For tables in memory, not for security. */
export function stringHash(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}

/** Unused memory in front of bytes, in which a response writes its head: then one write sends both. Bytes. */
export const headRoom = 768

/** Memory for `size` bytes, with nothing else in it except the head room. */
export const allocateWithHeadRoom = (size: number): Buffer<ArrayBuffer> =>
  Buffer.allocUnsafeSlow(headRoom + size).subarray(headRoom)

export function withHeadRoom(bytes: Uint8Array): Buffer<ArrayBuffer> {
  const copy = allocateWithHeadRoom(bytes.length)
  copy.set(bytes)
  return copy
}

export const hasHeadRoom = ({ buffer, byteOffset, length }: Uint8Array): boolean =>
  byteOffset === headRoom && buffer.byteLength === headRoom + length
