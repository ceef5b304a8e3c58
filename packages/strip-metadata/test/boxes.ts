/** Numbers of 2 or 4 bytes. */
export const bytesOf = (...numbers: readonly (readonly [value: number, size: 2 | 4])[]): Buffer =>
  Buffer.concat(
    numbers.map(([value, size]) => {
      const bytes = Buffer.alloc(size)
      bytes.writeUIntBE(value, 0, size)
      return bytes
    }),
  )

/** A box (ISO 14496-12) of this type. */
export const box = (type: string, ...content: readonly (string | Buffer)[]): Buffer => {
  const data = Buffer.concat([Buffer.from(type, 'latin1'), ...content.map((each) => Buffer.from(each))])
  return Buffer.concat([bytesOf([data.length + 4, 4]), data])
}

/** Bytes before the boxes in a box. */
const skipped: Readonly<Record<string, number>> = { stsd: 8 }

/** A list of boxes in which another box is appended to the first box with this path. Positions before it stay right. */
export function withBox(bytes: Buffer, path: readonly string[], added: Buffer): Buffer {
  const found = appended(bytes, path, added)
  if (found === null) throw new Error(`no ${path.join('/')}`)
  return found
}

function appended(bytes: Buffer, [type = '', ...path]: readonly string[], added: Buffer): Buffer | null {
  for (let at = 0; at + 8 <= bytes.length; ) {
    const end = at + bytes.readUInt32BE(at)
    const content = bytes.subarray(at + 8, end)
    const head = skipped[type] ?? 0
    if (bytes.toString('latin1', at + 4, at + 8) === type) {
      const inner = path.length === 0 ? added : appended(content.subarray(head), path, added)
      const kept = path.length === 0 ? content : content.subarray(0, head)
      if (inner !== null)
        return Buffer.concat([bytes.subarray(0, at), box(type, kept, inner), bytes.subarray(end)])
    }
    at = end
  }
  return null
}
