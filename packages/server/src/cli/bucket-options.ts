import {
  type BucketOptionName,
  type BucketSettings,
  bucketOptions as readers,
} from '../core/bucket-options.ts'
import { formatSize } from './client/terminal-text.ts'
import { UsageError } from './command.ts'
import { formatCount } from './table.ts'

/** The option of one setting of a bucket. */
interface BucketOption {
  readonly name: BucketOptionName
  /** Its value in the usage. */
  readonly value: string
  readonly help: string
  /** Undefined if `settings` does not define it. */
  describe(settings: Partial<BucketSettings>): string | undefined
}

function option<Value>({
  ofSettings,
  describe,
  ...texts
}: Pick<BucketOption, 'name' | 'value' | 'help'> & {
  readonly ofSettings: (settings: Partial<BucketSettings>) => Value | undefined
  readonly describe: (value: Value) => string
}): BucketOption {
  return {
    ...texts,
    describe(settings) {
      const value = ofSettings(settings)
      return value === undefined ? undefined : describe(value)
    },
  }
}

const options: readonly BucketOption[] = [
  option({
    name: 'max-items',
    value: 'N|none',
    help: 'The maximum number of items, or none for no limit.',
    ofSettings: ({ maxItems }) => maxItems,
    describe: (maxItems) => (maxItems === null ? 'no limit on items' : formatCount(maxItems, 'item')),
  }),
  option({
    name: 'max-bytes',
    value: 'SIZE|none',
    help: 'The maximum size of all items together, such as 500MB, 10GB or 2GiB, or none for no limit.',
    ofSettings: ({ maxBytes }) => maxBytes,
    describe: (maxBytes) => (maxBytes === null ? 'no limit on bytes' : formatSize(maxBytes)),
  }),
  option({
    name: 'trash-days',
    value: 'N|none',
    help: 'The days for which deleted items can be restored, or none for no trash. Applies to later deletes.',
    ofSettings: ({ trashDays }) => trashDays,
    describe: (trashDays) => (trashDays === 0 ? 'no trash' : `a trash for ${formatCount(trashDays, 'day')}`),
  }),
  option({
    name: 'item-days',
    value: 'N|none',
    help: 'The days after which new items expire and are removed, or none. Items that exist stay as they are.',
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
    ofSettings: ({ isPrivate }) => isPrivate,
    describe: (isPrivate) => (isPrivate ? 'private' : 'public'),
  }),
  option({
    name: 'signed-pages',
    value: 'on|off',
    help: 'Whether lists of a private bucket have signed URLs, which are valid for 15 to 30 minutes.',
    ofSettings: ({ signedPages }) => signedPages,
    describe: (signedPages) => (signedPages ? 'signed URLs in lists' : 'plain URLs in lists'),
  }),
  option({
    name: 'remove-metadata',
    value: 'on|off',
    help: 'Whether location, camera and other metadata is removed from pictures and videos. Applies to later uploads.',
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
    ...options.map(({ name }) => {
      const text = values[name]
      return typeof text === 'string' ? readOption(name, text) : {}
    }),
  )

/** Throws UsageError. */
function readOption(name: BucketOptionName, text: string): Partial<BucketSettings> {
  const { read, accepts } = readers[name]
  const settings = read(text)
  if (settings === undefined) throw new UsageError(`--${name} takes ${accepts}, not "${text}"`)
  return settings
}

/** For signed pages of a bucket that is public. */
export const publicBucketNote = (name: string): string =>
  `The bucket is public, so its lists have plain URLs until it is private: mediabucket bucket set ${name} --private on`

/** Describes the settings that are defined, as in `5 items, no limit on bytes`. */
export const formatBucketSettings = (settings: Partial<BucketSettings>): string =>
  options.flatMap((each) => each.describe(settings) ?? []).join(', ')
