import type { ItemKind } from '../../core/items-query.ts'
import { kindNumber } from '../item-kinds.ts'

// A gram is a sequence of one, two or three UTF-16 code units of a name in its indexed form. Its key has 32 bits. Keys of ASCII grams are unique;
// others may collide, so a posting list may have items that a search must exclude by their names.

/** The most posting lists that a search intersects. */
const maxKeys = 16

/** A permutation of the 32-bit integers that distributes the keys evenly: the finalizer of MurmurHash3. */
function scatter(value: number): number {
  let bits = value
  bits = Math.imul(bits ^ (bits >>> 16), 0x85eb_ca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2_ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

// The lengths 1 to 3 are in bits 21 and 22, kinds have length 0.
const one = (a: number) => scatter(a < 128 ? a | (1 << 21) : scatter(a) ^ 0x9e37_79b9)
const two = (a: number, b: number) =>
  scatter((a | b) < 128 ? a | (b << 7) | (2 << 21) : scatter(a | (b << 16)) ^ 0x7f4a_7c15)
const three = (a: number, b: number, c: number) =>
  scatter(
    (a | b | c) < 128
      ? a | (b << 7) | (c << 14) | (3 << 21)
      : scatter(a | (b << 16)) ^ Math.imul(c + 1, 0x27d4_eb2f),
  )

/** The key of the items of a kind. */
export const kindKey = (kind: ItemKind): number => scatter(kindNumber(kind))

/** Calls `add` with the key of every gram of a name in its indexed form, several times if the name repeats it. */
export function eachGram(name: string, add: (key: number) => void): void {
  let [b, a] = [-1, -1]
  for (let index = 0; index < name.length; index += 1) {
    const c = name.charCodeAt(index)
    add(one(c))
    if (b >= 0) add(two(b, c))
    if (a >= 0) add(three(a, b, c))
    a = b
    b = c
  }
}

/** The keys whose posting lists have every item with these terms, which are folded: those of the longest grams, evenly distributed if there are many. */
export function searchKeys(terms: readonly string[]): readonly number[] {
  const perTerm = Math.max(1, Math.floor(maxKeys / terms.length))
  return [...new Set(terms.flatMap((term) => pick(longestGrams(term.normalize('NFD')), perTerm)))]
}

function longestGrams(term: string): number[] {
  const codes = Array.from({ length: term.length }, (_, index) => term.charCodeAt(index))
  const [a = 0, b = 0] = codes
  if (codes.length === 1) return [one(a)]
  if (codes.length === 2) return [two(a, b)]
  return codes.slice(2).map((code, index) => three(codes[index] ?? 0, codes[index + 1] ?? 0, code))
}

/** Up to `count` of the values, at equal distances. */
const pick = (values: readonly number[], count: number): readonly number[] =>
  values.length <= count ? values : values.filter((_, index) => (index * count) % values.length < count)
