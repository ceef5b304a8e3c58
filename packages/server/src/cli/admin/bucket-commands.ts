import { CommandError, parse, UsageError } from '@mediabucket/cli/command'
import { formatCount, formatSize, jsonLine, table } from '@mediabucket/cli/terminal'
import type { ManagedBucket } from '@mediabucket/client'
import { ensureSigningKey } from '../../access/signed-links.ts'
import { bucketMembers, givenSettingMembers } from '../../core/bucket-members.ts'
import {
  type BucketOptionName,
  type BucketSettings,
  bucketOptions as readers,
} from '../../core/bucket-settings.ts'
import { bucketNameRule, isBucketName } from '../../core/names.ts'
import { administer, administrationCommand, connectionText } from './administration.ts'
import { unknownBucket, withNewCatalog } from './open-catalog.ts'

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
    name: 'max-file-size',
    value: 'SIZE|none',
    help: 'The maximum size of a file, such as 25MB, or none for that of the service. Applies to later uploads.',
    ofSettings: ({ maxFileSize }) => maxFileSize,
    describe: (maxFileSize) =>
      maxFileSize === null ? 'no limit of a file' : `files of up to ${formatSize(maxFileSize)}`,
  }),
  option({
    name: 'types',
    value: 'TYPES|none',
    help: 'The types that files may have, such as "image/* application/pdf", or none for all. Applies to later uploads.',
    ofSettings: ({ types }) => types,
    describe: (types) => (types === null ? 'files of all types' : `files of ${types.join(', ')}`),
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
    name: 'public-keys',
    value: 'on|off',
    help: 'Whether everybody may read objects of the S3 protocol that are public-read, by their keys.',
    ofSettings: ({ publicKeys }) => publicKeys,
    describe: (publicKeys) => (publicKeys ? 'public keys' : 'no public keys'),
  }),
  option({
    name: 'public-list',
    value: 'on|off',
    help: 'Whether everybody may list the keys of a bucket with public keys.',
    ofSettings: ({ publicList }) => publicList,
    describe: (publicList) => (publicList ? 'public list of keys' : 'no public list of keys'),
  }),
  option({
    name: 'url-uploads',
    value: 'on|off',
    help: 'Whether the bucket stores files that the service requests from other servers, where the service does.',
    ofSettings: ({ urlUploads }) => urlUploads,
    describe: (urlUploads) => (urlUploads ? 'uploads from URLs' : 'no uploads from URLs'),
  }),
  option({
    name: 'variants',
    value: 'SIZES|none',
    help: 'The sizes of smaller pictures, such as "card=640x360:cover link=1200x630:cover:jpeg:q80", or none for those of the service.',
    ofSettings: ({ variants }) => variants,
    describe: (variants) =>
      variants === null ? 'the sizes of the service' : `the sizes ${variants.join(', ')}`,
  }),
  option({
    name: 'public-variants',
    value: 'NAMES|none',
    help: 'The sizes of smaller pictures that everybody may read although the bucket is private, by their names.',
    ofSettings: ({ publicVariants }) => publicVariants,
    describe: (names) => (names === null ? 'no public variants' : `public variants ${names.join(', ')}`),
  }),
  option({
    name: 'crop',
    value: 'center|attention|none',
    help: 'What sizes that cut keep of pictures without a focus, or none for the setting of the service.',
    ofSettings: ({ crop }) => crop,
    describe: (crop) => (crop === null ? 'the crop of the service' : `the crop "${crop}"`),
  }),
  option({
    name: 'remove-metadata',
    value: 'on|off|except-taken',
    help: 'Whether location, camera and other metadata is removed from pictures and videos. Applies to later uploads.',
    ofSettings: ({ removesMetadata }) => removesMetadata,
    describe: (removesMetadata) =>
      `metadata is ${removesMetadata ? 'removed' : 'kept'}${removesMetadata === 'except-taken' ? ' except the time of pictures and videos' : ''}`,
  }),
]

/** For `parseArgs`. */
export const bucketOptions: Readonly<Record<string, { readonly type: 'string' }>> = Object.fromEntries(
  options.map(({ name }) => [name, { type: 'string' }]),
)

/** As in `[--max-items N|none] [--trash-days N]`. */
export const bucketOptionUsage = options.map(({ name, value }) => `[--${name} ${value}]`).join(' ')

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
const publicBucketNote = (name: string, connection: string): string =>
  `The bucket is public, so its lists have plain URLs until it is private: mediabucket bucket set ${name} --private on${connection}`

/** Describes the settings that are defined, as in `5 items, no limit on bytes`. */
export const formatBucketSettings = (settings: Partial<BucketSettings>): string =>
  options.flatMap((each) => each.describe(settings) ?? []).join(', ')

export const bucketCreate = administrationCommand({
  help: `Usage: mediabucket bucket create NAME ${bucketOptionUsage}

Creates an empty bucket; works while the service is running. To create a token for it, run
\`mediabucket token create --bucket NAME\`. ${bucketNameRule}

Options:
${bucketHelp}`,

  async run(args, context) {
    const { report } = context
    const { values, positionals } = parse('bucket create', {
      args: [...args],
      allowPositionals: true,
      options: bucketOptions,
    })
    const [name, ...more] = positionals
    if (name === undefined || more.length > 0)
      throw new UsageError('bucket create takes one NAME. See: mediabucket bucket create --help')
    if (!isBucketName(name)) throw new UsageError(`"${name}" is not a valid bucket name. ${bucketNameRule}`)
    const settings = readBucketSettings(values)
    const created = () => {
      const create = `mediabucket token create --bucket ${name}${connectionText(context)}`
      report(`Created the bucket "${name}". Create a token for it: ${create}`)
      if (settings.signedPages && !settings.isPrivate) report(publicBucketNote(name, connectionText(context)))
    }
    await administer(
      context,
      async ({ service }) => {
        await service.buckets.create({ name, ...givenSettingMembers(settings) })
        created()
      },
      async (catalog) => {
        const now = Date.now()
        if (!(await catalog.createBucket(name, settings, now)))
          throw new CommandError(`the bucket "${name}" already exists. See: mediabucket bucket list`)
        if (settings.isPrivate) await ensureSigningKey(catalog, now)
        created()
      },
      (_, use) => withNewCatalog(context, use),
    )
  },
})

export const bucketList = administrationCommand({
  help: `Usage: mediabucket bucket list [--json]

Prints a table; its first column is the name of the bucket. The header is printed on a terminal only.

Options:
  --json  Print one JSON object per line, with sizes in bytes.`,

  async run(args, context) {
    const { print, report } = context
    const { values } = parse('bucket list', { args: [...args], options: { json: { type: 'boolean' } } })
    const show = (buckets: readonly BucketRow[]) => {
      if (values.json) for (const bucket of buckets) print(jsonLine(bucket))
      else if (buckets.length === 0)
        report(`There are no buckets. Create one: mediabucket bucket create NAME${connectionText(context)}`)
      else for (const line of table(columns, buckets, { header: process.stdout.isTTY })) print(line)
    }
    await administer(
      context,
      async ({ service }) => {
        const buckets: BucketRow[] = []
        for await (const { created_at: _, ...bucket } of service.buckets.list()) buckets.push(bucket)
        show(buckets)
      },
      async (catalog) => show((await catalog.listBuckets()).map(bucketMembers)),
    )
  },
})

/** A bucket of a response, or of the data. */
type BucketRow = Omit<ManagedBucket, 'created_at'>

const columns = [
  { header: 'BUCKET', cell: ({ name }: BucketRow) => name },
  { header: 'ITEMS', cell: ({ items }: BucketRow) => `${items}`, alignRight: true },
  { header: 'MAX ITEMS', cell: ({ max_items: most }: BucketRow) => `${most ?? 'none'}`, alignRight: true },
  { header: 'SIZE', cell: ({ bytes }: BucketRow) => formatSize(bytes), alignRight: true },
  {
    header: 'MAX SIZE',
    cell: ({ max_bytes: most }: BucketRow) => (most === null ? 'none' : formatSize(most)),
    alignRight: true,
  },
  { header: 'ACCESS', cell: (bucket: BucketRow) => (bucket.private ? 'private' : 'public') },
]

export const bucketSet = administrationCommand({
  help: `Usage: mediabucket bucket set NAME ${bucketOptionUsage}

Works while the service is running. --private, --signed-pages, --public-keys, --public-list, --variants, --public-variants and --crop apply from the next request, the other settings from the next upload and
the next delete. Existing items stay, even if they exceed the quota, and so do items that are in the trash, until the time that they had.

Options:
${bucketHelp}`,

  async run(args, context) {
    const { report } = context
    const { values, positionals } = parse('bucket set', {
      args: [...args],
      allowPositionals: true,
      options: bucketOptions,
    })
    const [name, ...more] = positionals
    if (name === undefined || more.length > 0)
      throw new UsageError('bucket set takes one NAME. See: mediabucket bucket list')
    const settings = readBucketSettings(values)
    if (Object.keys(settings).length === 0)
      throw new UsageError(`bucket set needs ${bucketOptionList}. See: mediabucket bucket set --help`)
    const changed = (bucket: Pick<ManagedBucket, 'items' | 'bytes' | 'private'>) => {
      report(`Settings of the bucket "${name}": ${formatBucketSettings(settings)}.`)
      const { items, bytes } = bucket
      if (settings.signedPages && !bucket.private) report(publicBucketNote(name, connectionText(context)))
      if (items > (settings.maxItems ?? items) || bytes > (settings.maxBytes ?? bytes))
        report(
          `The bucket already holds more: ${formatCount(items, 'item')}, ${formatSize(bytes)}. They stay; uploads are refused until enough items are deleted.`,
        )
    }
    await administer(
      context,
      async ({ service }) => changed((await service.buckets.set(name, givenSettingMembers(settings))).bucket),
      async (catalog) => {
        if (!(await catalog.setBucket(name, settings))) throw unknownBucket(name)
        if (settings.isPrivate) await ensureSigningKey(catalog, Date.now())
        const bucket = await catalog.findBucketNamed(name)
        if (bucket === null) throw unknownBucket(name)
        changed({ ...bucket, private: bucket.isPrivate })
      },
    )
  },
})
