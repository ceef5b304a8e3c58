import type { Quota } from './quota.ts'
import { parseSize } from './size.ts'

/** The settings of a bucket. */
export interface BucketSettings extends Quota {
  /** Days for which deleted items can be restored; 0 for no trash. */
  readonly trashDays: number
  /** Whether bytes need a token or a signed URL. */
  readonly isPrivate: boolean
  /** Whether lists of a private bucket have signed URLs. */
  readonly signedPages: boolean
  /** Whether the metadata of pictures and videos is removed when they are stored. */
  readonly removesMetadata: boolean
  /** The lifetime of new items in days; null if they do not expire. */
  readonly itemDays: number | null
}

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

/** A century. */
const maxDays = 36_500

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

const parseSwitch = (text: string): boolean | undefined =>
  text === 'on' ? true : text === 'off' ? false : undefined

/** The settings of a bucket by their names: options of commands, and parts of MEDIABUCKET_JWT_BUCKET_OPTIONS. */
export const bucketOptions = {
  'max-items': option('a whole number or none', parseLimit(parseCount), (maxItems) => ({ maxItems })),
  'max-bytes': option('a size such as 500MB or 10GB or none', parseLimit(parseSize), (maxBytes) => ({
    maxBytes,
  })),
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
  'remove-metadata': option('on or off', parseSwitch, (removesMetadata) => ({ removesMetadata })),
} as const satisfies Readonly<Record<string, BucketOption>>

export type BucketOptionName = keyof typeof bucketOptions

const isOptionName = (name: string): name is BucketOptionName => Object.hasOwn(bucketOptions, name)

/** Reads options such as `max-bytes=1GB, private=on`. Undefined if one of them is not valid, or occurs twice. */
export function parseBucketOptions(text: string): Partial<BucketSettings> | undefined {
  const parts = text === '' ? [] : text.split(',').map((part) => part.trim().split('='))
  const names = new Set<string>()
  let settings: Partial<BucketSettings> = {}
  for (const [name = '', value = '', ...more] of parts) {
    const read = isOptionName(name) && !names.has(name) ? bucketOptions[name].read(value) : undefined
    if (read === undefined || more.length > 0) return undefined
    names.add(name)
    settings = { ...settings, ...read }
  }
  return settings
}
