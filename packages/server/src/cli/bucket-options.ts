import type { BucketSettings } from '../catalog/records.ts'
import { parseSize } from '../core/size.ts'
import { formatSize } from './client/terminal-text.ts'
import { UsageError } from './command.ts'
import { formatCount } from './table.ts'

/** The option of one setting of a bucket. */
interface BucketOption {
  readonly name: string
  /** Its value in the usage. */
  readonly value: string
  readonly help: string
  /** Throws UsageError. */
  read(text: string): Partial<BucketSettings>
  /** Undefined if `settings` does not define it. */
  describe(settings: Partial<BucketSettings>): string | undefined
}

/** `toSettings` gets undefined for a value that is not valid. */
function option<Value>({
  validValues,
  parse,
  toSettings,
  ofSettings,
  describe,
  ...texts
}: Pick<BucketOption, 'name' | 'value' | 'help'> & {
  readonly validValues: string
  /** Undefined if the text is not valid. */
  readonly parse: (text: string) => Value | undefined
  readonly toSettings: (value: Value) => Partial<BucketSettings>
  readonly ofSettings: (settings: Partial<BucketSettings>) => Value | undefined
  readonly describe: (value: Value) => string
}): BucketOption {
  return {
    ...texts,
    read(text) {
      const value = parse(text)
      if (value === undefined) throw new UsageError(`--${texts.name} takes ${validValues}, not "${text}"`)
      return toSettings(value)
    },
    describe(settings) {
      const value = ofSettings(settings)
      return value === undefined ? undefined : describe(value)
    },
  }
}

/** A century. */
const maxDays = 36_500

const parseCount = (text: string): number | undefined => {
  const value = /^(0|[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : undefined
}

/** Null for no limit. */
const parseLimit =
  (parse: (text: string) => number | null | undefined) =>
  (text: string): number | null | undefined =>
    text === 'none' ? null : (parse(text) ?? undefined)

const parseSwitch = (text: string): boolean | undefined =>
  text === 'on' ? true : text === 'off' ? false : undefined

const options: readonly BucketOption[] = [
  option({
    name: 'max-items',
    value: 'N|none',
    help: 'The maximum number of items, or none for no limit.',
    validValues: 'a whole number or none',
    parse: parseLimit(parseCount),
    toSettings: (maxItems) => ({ maxItems }),
    ofSettings: ({ maxItems }) => maxItems,
    describe: (maxItems) => (maxItems === null ? 'no limit on items' : formatCount(maxItems, 'item')),
  }),
  option({
    name: 'max-bytes',
    value: 'SIZE|none',
    help: 'The maximum size of all items together, such as 500MB, 10GB or 2GiB, or none for no limit.',
    validValues: 'a size such as 500MB or 10GB or none',
    parse: parseLimit(parseSize),
    toSettings: (maxBytes) => ({ maxBytes }),
    ofSettings: ({ maxBytes }) => maxBytes,
    describe: (maxBytes) => (maxBytes === null ? 'no limit on bytes' : formatSize(maxBytes)),
  }),
  option({
    name: 'trash-days',
    value: 'N|none',
    help: 'The days for which deleted items can be restored, or none for no trash. Applies to later deletes.',
    validValues: `a whole number from 0 to ${maxDays} or none`,
    parse: (text) => {
      const days = text === 'none' ? 0 : parseCount(text)
      return days === undefined || days > maxDays ? undefined : days
    },
    toSettings: (trashDays) => ({ trashDays }),
    ofSettings: ({ trashDays }) => trashDays,
    describe: (trashDays) => (trashDays === 0 ? 'no trash' : `a trash for ${formatCount(trashDays, 'day')}`),
  }),
  option({
    name: 'item-days',
    value: 'N|none',
    help: 'The days after which new items expire and are removed, or none. Items that exist stay as they are.',
    validValues: `a whole number from 1 to ${maxDays} or none`,
    parse: parseLimit((text) => {
      const days = parseCount(text)
      return days === undefined || days < 1 || days > maxDays ? undefined : days
    }),
    toSettings: (itemDays) => ({ itemDays }),
    ofSettings: ({ itemDays }) => itemDays,
    describe: (itemDays) =>
      itemDays === null
        ? 'items without an expiry'
        : `a lifetime of ${formatCount(itemDays, 'day')} for items`,
  }),
  option({
    name: 'private',
    value: 'on|off',
    help: 'Whether files need a token or a signed URL. With off, the URL of a file is enough.',
    validValues: 'on or off',
    parse: parseSwitch,
    toSettings: (isPrivate) => ({ isPrivate }),
    ofSettings: ({ isPrivate }) => isPrivate,
    describe: (isPrivate) => (isPrivate ? 'private' : 'public'),
  }),
  option({
    name: 'signed-pages',
    value: 'on|off',
    help: 'Whether lists of a private bucket have signed URLs, which are valid for 15 to 30 minutes.',
    validValues: 'on or off',
    parse: parseSwitch,
    toSettings: (signedPages) => ({ signedPages }),
    ofSettings: ({ signedPages }) => signedPages,
    describe: (signedPages) => (signedPages ? 'signed URLs in lists' : 'plain URLs in lists'),
  }),
  option({
    name: 'remove-metadata',
    value: 'on|off',
    help: 'Whether location, camera and other metadata is removed from pictures and videos. Applies to later uploads.',
    validValues: 'on or off',
    parse: parseSwitch,
    toSettings: (removesMetadata) => ({ removesMetadata }),
    ofSettings: ({ removesMetadata }) => removesMetadata,
    describe: (removesMetadata) => `metadata is ${removesMetadata ? 'removed' : 'kept'}`,
  }),
]

/** For `parseArgs`. */
export const bucketOptions: Readonly<Record<string, { readonly type: 'string' }>> = Object.fromEntries(
  options.map(({ name }) => [name, { type: 'string' }]),
)

/** As in `[--max-items N|none] [--trash-days N]`. */
export const bucketUsage = options.map(({ name, value }) => `[--${name} ${value}]`).join(' ')

const label = ({ name, value }: BucketOption) => `--${name} ${value.replace('|none', '')}`
const width = Math.max(...options.map((each) => label(each).length))

export const bucketHelp = options.map((each) => `  ${label(each).padEnd(width)}  ${each.help}`).join('\n')

/** As in `--max-items, --max-bytes or --trash-days`. */
export const bucketOptionList = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(
  options.map(({ name }) => `--${name}`),
)

/** Returns the settings whose options were given. Throws UsageError. */
export const readBucketSettings = (
  values: Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>,
): Partial<BucketSettings> =>
  Object.assign(
    {},
    ...options.map((each) => {
      const text = values[each.name]
      return typeof text === 'string' ? each.read(text) : {}
    }),
  )

/** For signed pages of a bucket that is public. */
export const publicBucketNote = (name: string): string =>
  `The bucket is public, so its lists have plain URLs until it is private: mediabucket bucket set ${name} --private on`

/** Describes the settings that are defined, as in `5 items, no limit on bytes`. */
export const formatBucketSettings = (settings: Partial<BucketSettings>): string =>
  options.flatMap((each) => each.describe(settings) ?? []).join(', ')
