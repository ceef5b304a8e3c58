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

/** Boxes that consist of boxes, after these bytes. */
const lists: Readonly<Record<string, number>> = {
  ...{ moov: 0, trak: 0, edts: 0, mdia: 0, minf: 0, dinf: 0, stbl: 0, mvex: 0, moof: 0, traf: 0 },
  ...{ meta: 4, iprp: 0, ipco: 0, iinf: 6, iref: 4, dref: 8, stsd: 8, avc1: 78, hvc1: 78, mp4a: 28 },
}

/** The paths to all boxes, by their positions among those of their parent, and their names. */
export function boxPaths(bytes: Buffer, from = 0): { readonly path: number[]; readonly name: string }[] {
  const found: { path: number[]; name: string }[] = []
  for (let [at, nth] = [from, 0]; at + 8 <= bytes.length; nth += 1) {
    const [end, type] = [at + bytes.readUInt32BE(at), bytes.toString('latin1', at + 4, at + 8)]
    found.push({ path: [nth], name: type })
    const first = lists[type]
    if (first !== undefined)
      for (const { path, name } of boxPaths(bytes.subarray(at, end), 8 + first))
        found.push({ path: [nth, ...path], name: `${type}/${name}` })
    at = end
  }
  return found
}

/** The list of boxes in which bytes are appended to the box with this path. */
export function withBytesInBox(
  bytes: Buffer,
  [nth = 0, ...path]: readonly number[],
  more: Buffer,
  from = 0,
): Buffer {
  let at = from
  for (let skip = nth; skip > 0; skip -= 1) at += bytes.readUInt32BE(at)
  const end = at + bytes.readUInt32BE(at)
  const type = bytes.toString('latin1', at + 4, at + 8)
  const whole = bytes.subarray(at, end)
  const first = 8 + (lists[type] ?? 0)
  const changed = path.length === 0 ? Buffer.concat([whole, more]) : withBytesInBox(whole, path, more, first)
  const copy = Buffer.from(changed)
  copy.writeUInt32BE(copy.length)
  return Buffer.concat([bytes.subarray(0, at), copy, bytes.subarray(end)])
}

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
