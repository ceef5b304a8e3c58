/** The columns of a matrix from linear colours to XYZ, adapted to D50; a curve. */
export interface ColourSpace {
  readonly red: readonly number[]
  readonly green: readonly number[]
  readonly blue: readonly number[]
  readonly gamma: number
}

const primaries = {
  'Display P3': {
    ...{
      red: [0.51512, 0.2412, -0.00105],
      green: [0.29198, 0.69225, 0.04189],
      blue: [0.1571, 0.06657, 0.78407],
    },
    gamma: 2.2,
  },
  'Adobe RGB': {
    ...{
      red: [0.60974, 0.31111, 0.01947],
      green: [0.20528, 0.62567, 0.06087],
      blue: [0.14919, 0.06322, 0.74457],
    },
    gamma: 2.2,
  },
} as const satisfies Record<string, ColourSpace>

export const colourSpaces: Readonly<Record<string, ColourSpace>> = primaries

const fixed = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(Math.round(value * 65_536))
  return bytes
}
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
const xyz = (values: readonly number[]) => Buffer.concat([Buffer.from('XYZ \0\0\0\0'), ...values.map(fixed)])
const curve = (gamma: number) =>
  Buffer.concat([Buffer.from('curv\0\0\0\0'), u32(1), u32(Math.round(gamma * 256) * 65_536)])
const white = [0.9642, 1, 0.8249]

/** An ICC profile (version 2) of a colour space, or of grey with a curve. */
export function iccProfile(space: ColourSpace | number): Buffer {
  const isGrey = typeof space === 'number'
  const tags: readonly (readonly [string, Buffer])[] = [
    ['desc', Buffer.concat([Buffer.from('desc\0\0\0\0'), u32(2), Buffer.from('x\0'), Buffer.alloc(78)])],
    ['cprt', Buffer.from('text\0\0\0\0none\0\0\0\0')],
    ['wtpt', xyz(white)],
    ...(isGrey
      ? [['kTRC', curve(space)] as const]
      : [
          ...[
            ['rXYZ', xyz(space.red)] as const,
            ['gXYZ', xyz(space.green)] as const,
            ['bXYZ', xyz(space.blue)] as const,
          ],
          ...['rTRC', 'gTRC', 'bTRC'].map((name) => [name, curve(space.gamma)] as const),
        ]),
  ]
  const header = Buffer.alloc(128)
  header.writeUInt32BE(0x02400000, 8)
  header.write(`mntr${isGrey ? 'GRAY' : 'RGB '}XYZ `, 12)
  header.write('acsp', 36)
  Buffer.concat(white.map(fixed)).copy(header, 68)
  let position = header.length + 4 + tags.length * 12
  const rows: Buffer[] = []
  const values: Buffer[] = []
  for (const [name, value] of tags) {
    rows.push(Buffer.from(name), u32(position), u32(value.length))
    const padded = Buffer.concat([value, Buffer.alloc(-value.length & 3)])
    values.push(padded)
    position += padded.length
  }
  header.writeUInt32BE(position)
  return Buffer.concat([header, u32(tags.length), ...rows, ...values])
}

/** Linear sRGB from XYZ at D50. */
const toSrgb = [
  [3.13414, -1.61739, -0.49063],
  [-0.97879, 1.91626, 0.03344],
  [0.07195, -0.22898, 1.40539],
] as const

const encoded = (linear: number): number => {
  const value = Math.min(1, Math.max(0, linear))
  return 255 * (value <= 0.0031308 ? value * 12.92 : 1.055 * value ** (1 / 2.4) - 0.055)
}

/** The numbers of a colour in sRGB, from 0 to 255. Colours that sRGB does not have are cut off. */
export function inSrgb(colour: readonly number[], space: ColourSpace): number[] {
  const linear = colour.map((value) => (value / 255) ** space.gamma)
  const at = (index: number) =>
    [space.red, space.green, space.blue].reduce(
      (sum, column, i) => sum + (column[index] ?? 0) * (linear[i] ?? 0),
      0,
    )
  const values = [at(0), at(1), at(2)]
  return toSrgb.map((row) =>
    encoded(row.reduce((sum, factor, index) => sum + factor * (values[index] ?? 0), 0)),
  )
}

/** The number of a grey in sRGB. */
export const greyInSrgb = (value: number, gamma: number): number => encoded((value / 255) ** gamma)
