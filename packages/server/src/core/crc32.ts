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
