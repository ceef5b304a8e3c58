/** A size of smaller pictures as the fields of a form have it (docs/interface.md V20). */
export interface SizeRow {
  readonly name: string
  /** Pixels, as typed. */
  readonly width: string
  /** Empty for that of the width. */
  readonly height: string
  readonly fit: 'contain' | 'cover'
  /** Empty for that of the request. */
  readonly format: string
  /** From 1 to 100; empty for the usual one. */
  readonly quality: string
  readonly animated: boolean
}

export const formats = ['jpeg', 'png', 'webp', 'avif', 'gif'] as const
export const maxSizes = 20
const maxSide = 4096

/** These always exist. */
const builtIn = ['thumb', 'medium']
export const firstSizes = 'thumb=400 medium=1600'

/** Reads entries such as `card=640x360:cover`, also incomplete ones of a form. */
export const readSizes = (text: string): readonly SizeRow[] =>
  text.split(' ').flatMap((entry) => (entry === '' ? [] : [readSize(entry)]))

function readSize(entry: string): SizeRow {
  const [head = '', ...parts] = entry.split(':')
  const [name = '', size = name] = head.split('=')
  const [width = '', height = ''] = size.split('x')
  return {
    ...{ name, width, height },
    fit: parts.includes('cover') ? 'cover' : 'contain',
    format: formats.find((format) => parts.includes(format)) ?? '',
    quality: parts.find((part) => /^q\d*$/.test(part))?.slice(1) ?? '',
    animated: parts.includes('animated'),
  }
}

const formatRow = ({ name, width, height, fit, format, quality, animated }: SizeRow): string =>
  [
    `${name}=${width}${height === '' ? '' : `x${height}`}`,
    ...(fit === 'cover' ? [fit] : []),
    ...(format === '' ? [] : [format]),
    ...(quality === '' ? [] : [`q${quality}`]),
    ...(animated ? ['animated'] : []),
  ].join(':')

export const formatSizes = (rows: readonly SizeRow[]): string => rows.map(formatRow).join(' ')

/** The same text for the same sizes, however they are written. */
export const normalSizes = (text: string): string =>
  formatSizes(
    readSizes(text).map((row) => ({
      ...row,
      height: row.height === row.width ? '' : row.height,
      // What the service takes for it.
      format: row.animated && row.format === '' ? 'webp' : row.format,
    })),
  )

export type SizeMistake = 'name' | 'repeated' | 'side' | 'quality' | 'qualityFormat' | 'animated'

/** What is wrong with each row; null for a right one. */
export const sizeMistakes = (rows: readonly SizeRow[]): readonly (SizeMistake | null)[] =>
  rows.map((row, index) => mistakeOf(row, rows.slice(0, index)))

function mistakeOf(row: SizeRow, before: readonly SizeRow[]): SizeMistake | null {
  const { name, width, height, format, quality, animated } = row
  if (!/^[a-z0-9][a-z0-9-]{0,31}$/.test(name)) return 'name'
  if (before.some((other) => other.name === name)) return 'repeated'
  if (!isWithin(width, maxSide) || (height !== '' && !isWithin(height, maxSide))) return 'side'
  if (quality !== '' && !isWithin(quality, 100)) return 'quality'
  if (quality !== '' && (format === 'png' || format === 'gif')) return 'qualityFormat'
  if (animated && format !== '' && format !== 'webp' && format !== 'gif') return 'animated'
  return null
}

const isWithin = (typed: string, most: number): boolean =>
  /^[1-9]\d{0,3}$/.test(typed) && Number(typed) <= most

/** Whether a bucket may have these sizes. */
export function areSizesRight(text: string): boolean {
  const rows = readSizes(text)
  const isRight = sizeMistakes(rows).every((mistake) => mistake === null)
  return isRight && new Set([...builtIn, ...rows.map(({ name }) => name)]).size <= maxSizes
}

/** The names that may be public: of these sizes, and others that are. */
export const sizeNames = (sizes: string, isPublic: readonly string[]): readonly string[] => [
  ...new Set([...builtIn, ...readSizes(sizes).map(({ name }) => name), ...isPublic]),
]

export const readNames = (text: string): readonly string[] => text.split(' ').filter((name) => name !== '')
