import { hash } from 'node:crypto'
import { Fault } from './faults.ts'
import { isTypes, maxTypes, parseSize, type Quota, storedTypesOf } from './quotas.ts'
import { maxDays } from './times.ts'
import { formatSize, isSizeName, maxSizes, parseSizeEntries, sizesRule } from './variant-sizes.ts'
import { type Crop, isCrop } from './variants.ts'

/** The settings of a bucket. */
export interface BucketSettings extends Quota {
  /** The largest file, in bytes; null for that of the service. */
  readonly maxFileSize: number | null
  /** The types that files may have, as in FileLimits; null for all. */
  readonly types: readonly string[] | null
  /** Days for which deleted items can be restored; 0 for no trash. */
  readonly trashDays: number
  /** Whether bytes need a token or a signed URL. */
  readonly isPrivate: boolean
  /** Whether lists of a private bucket have signed URLs. */
  readonly signedPages: boolean
  /** Whether everybody may read objects that are public-read, by their keys. */
  readonly publicKeys: boolean
  /** Whether everybody may list the keys, if the bucket has public keys. */
  readonly publicList: boolean
  /** Whether it stores files that the service requests from other servers, where the service does. */
  readonly urlUploads: boolean
  /** The entries of its own list of sizes (core/variant-sizes.ts); null for that of the service. */
  readonly variants: readonly string[] | null
  /** The names of the sizes that everybody may read although the bucket is private; null for none. */
  readonly publicVariants: readonly string[] | null
  /** What `cover` sizes keep of pictures without a focus; null for the setting of the service. */
  readonly crop: Crop | null
  readonly removesMetadata: MetadataRemoval
  /** The lifetime of new items in days; null if they do not expire. */
  readonly itemDays: number | null
}

/**
 * Whether the metadata of pictures and videos is removed when they are stored. With `except-taken`, the media object has the time at which they
 * were taken (docs/interface.md M9); the files have none.
 */
export type MetadataRemoval = boolean | 'except-taken'

/** Identifies the settings of a bucket: as an entity tag, without its quotes. The id distinguishes buckets that had one name. */
export const settingsTag = (bucketId: number, settings: BucketSettings): string =>
  hash(
    'sha256',
    JSON.stringify([
      bucketId,
      ...[settings.maxItems, settings.maxBytes, settings.trashDays, settings.isPrivate],
      ...[settings.signedPages, settings.removesMetadata, settings.itemDays],
      ...[settings.maxFileSize, settings.types, settings.publicKeys, settings.urlUploads],
      ...[settings.variants, settings.publicVariants, settings.crop, settings.publicList],
    ]),
    'base64url',
  )

export const settingsChanged = (): Fault =>
  new Fault('precondition-failed', 'If-Match does not name the current ETag of the bucket.')

/** The text of one setting, as people write it. */
interface BucketOption {
  /** Completes "takes …". */
  readonly accepts: string
  /** Undefined if the text is not valid. */
  readonly read: (text: string) => Partial<BucketSettings> | undefined
}

/** `toSettings` gets the value of a valid text. */
function option<Value>(
  accepts: string,
  parse: (text: string) => Value | undefined,
  toSettings: (value: Value) => Partial<BucketSettings>,
): BucketOption {
  return {
    accepts,
    read(text) {
      const value = parse(text)
      return value === undefined ? undefined : toSettings(value)
    },
  }
}

const parseCount = (text: string): number | undefined => {
  const value = /^(0|[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : undefined
}

const parseDays = (text: string, least: number): number | undefined => {
  const days = parseCount(text)
  return days === undefined || days < least || days > maxDays ? undefined : days
}

/** Null for no limit. */
const parseLimit =
  (parse: (text: string) => number | null | undefined) =>
  (text: string): number | null | undefined =>
    text === 'none' ? null : (parse(text) ?? undefined)

const parseTypes = (text: string): readonly string[] | null | undefined => {
  if (text === 'none') return null
  const types = text.split(/[\s,]+/).filter((type) => type !== '')
  return isTypes(types) ? storedTypesOf(types) : undefined
}

const parseNames = (text: string): readonly string[] => text.split(/[\s,]+/).filter((name) => name !== '')

/** The entries of a list of sizes in one spelling; undefined if they are not such a list. */
export const sizeEntriesOf = (entries: readonly string[]): readonly string[] | undefined =>
  entries.length === 0 ? undefined : parseSizeEntries(entries)?.map(formatSize)

/** Each name once, null for none; undefined if one cannot be the name of a size. */
export const publicNamesOf = (names: readonly string[]): readonly string[] | null | undefined =>
  names.length > maxSizes || !names.every(isSizeName)
    ? undefined
    : names.length === 0
      ? null
      : [...new Set(names)]

const parseSizes = (text: string): readonly string[] | null | undefined =>
  text === 'none' ? null : sizeEntriesOf(parseNames(text))

const parsePublicNames = (text: string): readonly string[] | null | undefined =>
  text === 'none' ? null : (publicNamesOf(parseNames(text)) ?? undefined)

const parseCrop = (text: string): Crop | null | undefined =>
  text === 'none' ? null : isCrop(text) ? text : undefined

const parseSwitch = (text: string): boolean | undefined =>
  text === 'on' ? true : text === 'off' ? false : undefined

const parseRemoval = (text: string): MetadataRemoval | undefined =>
  text === 'except-taken' ? text : parseSwitch(text)

/** The settings of a bucket by their names: options of commands, and parts of MEDIABUCKET_JWT_BUCKET_OPTIONS. */
export const bucketOptions = {
  'max-items': option('a whole number or none', parseLimit(parseCount), (maxItems) => ({ maxItems })),
  'max-bytes': option('a size such as 500MB or 10GB or none', parseLimit(parseSize), (maxBytes) => ({
    maxBytes,
  })),
  'max-file-size': option(
    'a size from 1 such as 25MB or none',
    parseLimit((text) => parseSize(text) || null),
    (maxFileSize) => ({ maxFileSize }),
  ),
  types: option(
    `1 to ${maxTypes} types such as image/* or application/pdf, separated by spaces or commas, or none`,
    parseTypes,
    (types) => ({ types }),
  ),
  'trash-days': option(
    `a whole number from 0 to ${maxDays} or none`,
    (text) => (text === 'none' ? 0 : parseDays(text, 0)),
    (trashDays) => ({ trashDays }),
  ),
  'item-days': option(
    `a whole number from 1 to ${maxDays} or none`,
    parseLimit((text) => parseDays(text, 1)),
    (itemDays) => ({ itemDays }),
  ),
  private: option('on or off', parseSwitch, (isPrivate) => ({ isPrivate })),
  'signed-pages': option('on or off', parseSwitch, (signedPages) => ({ signedPages })),
  'public-keys': option('on or off', parseSwitch, (publicKeys) => ({ publicKeys })),
  'public-list': option('on or off', parseSwitch, (publicList) => ({ publicList })),
  'url-uploads': option('on or off', parseSwitch, (urlUploads) => ({ urlUploads })),
  variants: option(`${sizesRule}; separated by spaces or commas; or none`, parseSizes, (variants) => ({
    variants,
  })),
  'public-variants': option(
    `1 to ${maxSizes} names of sizes, separated by spaces or commas, or none`,
    parsePublicNames,
    (publicVariants) => ({ publicVariants }),
  ),
  crop: option('center, attention or none', parseCrop, (crop) => ({ crop })),
  'remove-metadata': option('on, off or except-taken', parseRemoval, (removesMetadata) => ({
    removesMetadata,
  })),
} as const satisfies Readonly<Record<string, BucketOption>>

export type BucketOptionName = keyof typeof bucketOptions

const isOptionName = (name: string): name is BucketOptionName => Object.hasOwn(bucketOptions, name)

/** Reads options such as `max-bytes=1GB, private=on`. Undefined if one of them is not valid, or occurs twice. */
export function parseBucketOptions(text: string): Partial<BucketSettings> | undefined {
  const parts = text === '' ? [] : text.split(',').map((part) => part.trim().split(/=(.*)/s))
  const names = new Set<string>()
  let settings: Partial<BucketSettings> = {}
  for (const [name = '', value = ''] of parts) {
    const read = isOptionName(name) && !names.has(name) ? bucketOptions[name].read(value) : undefined
    if (read === undefined) return undefined
    names.add(name)
    settings = { ...settings, ...read }
  }
  return settings
}

/** The name of a bucket with one value of a claim: `user-{sub}`. */
export interface BucketPattern {
  readonly prefix: string
  /** As in `readClaim`. */
  readonly claim: string
  readonly suffix: string
}

/** The maximum length of a bucket name. */
const maxName = 63

/** Leaves 43 characters for the value, the length of a hashed one. */
const maxFixedPart = 20

const shape = /^(?<prefix>(?:[a-z0-9][a-z0-9-]*)?)\{(?<claim>[^{}\s]+)\}(?<suffix>[a-z0-9-]*)$/

/**
 * Parses the setting; null if it is malformed. It has exactly one claim, because two could be combined in several ways to the same name.
 * A pattern with `sub` has a prefix, so that no subject is called like a bucket of the operator.
 */
export function parseBucketPattern(text: string): BucketPattern | null {
  const { prefix = '', claim: named = '', suffix = '' } = shape.exec(text)?.groups ?? {}
  // The JSON Pointer to a claim at the top is the claim.
  const claim = named.replace(/^\/([^/~]+)$/, '$1')
  if (claim === '' || prefix.length + suffix.length > maxFixedPart) return null
  return claim === 'sub' && prefix === '' ? null : { prefix, claim, suffix }
}

/** A part of a bucket name that is no escaped and no hashed value: without two hyphens in a row. */
const plain = /^[a-z0-9]+(?:-[a-z0-9]+)*$/

/**
 * Returns the name of the bucket for the value of the claim; null if the value is empty, longer than 255 characters or no text. Different
 * values have different names: values of lower-case letters, digits and single hyphens stay as they are; in others every other byte is
 * written as a hyphen and two hexadecimal digits, after `x--`; what is then too long becomes `h--` and 160 bits of its SHA-256.
 */
export function bucketNameFor({ prefix, suffix }: BucketPattern, value: unknown): string | null {
  if (typeof value !== 'string' || value === '' || value.length > 255 || !value.isWellFormed()) return null
  const room = maxName - prefix.length - suffix.length
  if (plain.test(value) && value.length <= room) return prefix + value + suffix
  const escaped = `x--${[...Buffer.from(value)].map(escapeByte).join('')}`
  if (escaped.length <= room) return prefix + escaped + suffix
  return `${prefix}h--${hash('sha256', value).slice(0, 40)}${suffix}`
}

function escapeByte(byte: number): string {
  const letter = String.fromCharCode(byte)
  return /^[a-z0-9]$/.test(letter) ? letter : `-${byte.toString(16).padStart(2, '0')}`
}
