import type { CustomTypesConfig } from 'pg'

const parsers: Readonly<Record<number, (value: string) => unknown>> = {
  16: (value) => value === 't',
  // int8, int2, int4
  20: parseInteger,
  21: Number,
  23: Number,
  17: parseBytes,
}

/** The only place that parses values of results. Types that the catalog does not use stay text. */
export const types: CustomTypesConfig = {
  getTypeParser: (oid: number) => parsers[oid] ?? asText,
}

const asText = (value: string): string => value

function parseInteger(value: string): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) throw new RangeError(`the catalog holds ${value}, which is too large`)
  return number
}

/** `\x` and hexadecimal digits, which become bytes in a buffer of their own. */
function parseBytes(value: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(value.length / 2 - 1)
  Buffer.from(bytes.buffer).write(value.slice(2), 'hex')
  return bytes
}

const typeOfBytes = 17

/**
 * A parameter of the type bytea[], in the binary format, which is half as long as the text format. The format is that of
 * array_recv: dimensions, whether there are nulls, element type, length, lower bound; then the length and the bytes of each element.
 */
export function bytesArray(elements: readonly (Uint8Array | null)[]): Buffer {
  const header = 5 * 4
  const size = elements.reduce((sum, element) => sum + 4 + (element?.byteLength ?? 0), header)
  const buffer = Buffer.allocUnsafe(size)
  const integers = [1, elements.includes(null) ? 1 : 0, typeOfBytes, elements.length, 1]
  let offset = 0
  for (const integer of integers) offset = buffer.writeInt32BE(integer, offset)
  for (const element of elements) {
    offset = buffer.writeInt32BE(element?.byteLength ?? -1, offset)
    if (element === null) continue
    buffer.set(element, offset)
    offset += element.byteLength
  }
  return buffer
}
