import { type BucketSettings, publicNamesOf, sizeEntriesOf } from './bucket-settings.ts'
import type { ParameterFault } from './faults.ts'
import type { JsonObject } from './json.ts'
import { type Amount, isTypes, storedTypesOf, typesRule } from './quotas.ts'
import { maxDays } from './times.ts'
import { maxSizes, sizesRule } from './variant-sizes.ts'
import { type Crop, isCrop } from './variants.ts'

/** The members of JSON objects with the settings of a bucket (docs/interface.md BK4). */
export const settingNames = [
  ...([
    'max_items',
    'max_bytes',
    'max_file_size',
    'types',
    'trash_days',
    'item_days',
    'private',
    'signed_pages',
    'public_keys',
    'public_list',
    'url_uploads',
    'variants',
    'public_variants',
    'crop',
  ] as const),
  ...(['remove_metadata', 'keep_taken_at'] as const),
] as const

interface BucketState extends BucketSettings {
  readonly name: string
  readonly items: number
  readonly bytes: number
  readonly reservedItems: number
  readonly reservedBytes: number
  readonly trash: Amount
}

type SettingName = (typeof settingNames)[number]

const settingMembers = (settings: BucketSettings) => ({
  max_items: settings.maxItems,
  max_bytes: settings.maxBytes,
  max_file_size: settings.maxFileSize,
  types: settings.types,
  trash_days: settings.trashDays,
  private: settings.isPrivate,
  signed_pages: settings.signedPages,
  public_keys: settings.publicKeys,
  public_list: settings.publicList,
  url_uploads: settings.urlUploads,
  variants: settings.variants,
  public_variants: settings.publicVariants,
  crop: settings.crop,
  remove_metadata: settings.removesMetadata !== false,
  keep_taken_at: settings.removesMetadata !== true,
  item_days: settings.itemDays,
})

/** The members of the settings that are given; the others are undefined, which JSON leaves out. */
export function givenSettingMembers(settings: Partial<BucketSettings>) {
  const { removesMetadata } = settings
  return {
    max_items: settings.maxItems,
    max_bytes: settings.maxBytes,
    max_file_size: settings.maxFileSize,
    types: settings.types,
    trash_days: settings.trashDays,
    private: settings.isPrivate,
    signed_pages: settings.signedPages,
    public_keys: settings.publicKeys,
    public_list: settings.publicList,
    url_uploads: settings.urlUploads,
    variants: settings.variants,
    public_variants: settings.publicVariants,
    crop: settings.crop,
    remove_metadata: removesMetadata === undefined ? undefined : removesMetadata !== false,
    keep_taken_at: removesMetadata === undefined ? undefined : removesMetadata !== true,
    item_days: settings.itemDays,
  } satisfies { readonly [Name in SettingName]: unknown }
}

/** The members of a JSON object with a bucket (docs/interface.md Q3). */
export const bucketMembers = (bucket: BucketState) => ({
  name: bucket.name,
  items: bucket.items,
  bytes: bucket.bytes,
  reserved_items: bucket.reservedItems,
  reserved_bytes: bucket.reservedBytes,
  trash_items: bucket.trash.items,
  trash_bytes: bucket.trash.bytes,
  ...settingMembers(bucket),
})

/** Reads the members that an object has. Adds a fault for each that is malformed. */
export function readSettingMembers(object: JsonObject, faults: ParameterFault[]): Partial<BucketSettings> {
  /** Undefined if the object lacks the member. */
  function member<T>(
    name: SettingName,
    isValid: (value: unknown) => value is T,
    accepts: Omit<ParameterFault, 'parameter'>,
  ): T | undefined {
    const value = object[name]
    if (value === undefined || isValid(value)) return value
    faults.push({ parameter: name, ...accepts })
    return undefined
  }

  const limit = (name: SettingName, unit: 'items' | 'bytes') =>
    member(name, isLimit, {
      detail: `A whole number from 0 to ${Number.MAX_SAFE_INTEGER}, or null for no limit.`,
      ...{ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, unit },
    })
  const flag = (name: SettingName) => member(name, isFlag, { detail: 'true or false.' })
  const types = member('types', isTypesOrNull, {
    ...typesRule,
    detail: `${typesRule.detail} Null for all types.`,
  })
  const variants = member('variants', isSizesOrNull, {
    detail: `An array of ${sizesRule}. Null for the sizes of the service.`,
    ...{ minimum: 1, maximum: maxSizes, unit: 'entries' },
  })
  const publicVariants = member('public_variants', isNamesOrNull, {
    detail: `An array of up to ${maxSizes} names of sizes, or null for none.`,
    ...{ maximum: maxSizes, unit: 'entries' },
  })
  const trashDays = member('trash_days', isTrashDays, {
    detail: `A whole number from 0 to ${maxDays}, or null, for no trash.`,
    ...{ minimum: 0, maximum: maxDays, unit: 'days' },
  })
  const found = {
    maxItems: limit('max_items', 'items'),
    maxBytes: limit('max_bytes', 'bytes'),
    maxFileSize: member('max_file_size', isFileSize, {
      detail: 'A whole number from 1, or null for the limit of the service.',
      ...{ minimum: 1, unit: 'bytes' },
    }),
    types: types && storedTypesOf(types),
    trashDays: trashDays === null ? 0 : trashDays,
    itemDays: member('item_days', isItemDays, {
      detail: `A whole number from 1 to ${maxDays}, or null for items that do not expire.`,
      ...{ minimum: 1, maximum: maxDays, unit: 'days' },
    }),
    isPrivate: flag('private'),
    signedPages: flag('signed_pages'),
    publicKeys: flag('public_keys'),
    publicList: flag('public_list'),
    urlUploads: flag('url_uploads'),
    variants: variants && sizeEntriesOf(variants),
    publicVariants: publicVariants && publicNamesOf(publicVariants),
    crop: member('crop', isCropOrNull, {
      detail: 'center, attention, or null for the setting of the service.',
      accepted: ['center', 'attention'],
    }),
    removesMetadata: removalOf(flag('remove_metadata'), flag('keep_taken_at'), faults),
  }
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined))
}

/** The default of `keep_taken_at` is false where metadata is removed, as that of `--remove-metadata on`. */
function removalOf(
  removes: boolean | undefined,
  keepsTaken: boolean | undefined,
  faults: ParameterFault[],
): BucketSettings['removesMetadata'] | undefined {
  if (removes === undefined ? keepsTaken !== undefined : !removes && keepsTaken === false)
    faults.push({
      parameter: 'keep_taken_at',
      detail: 'Accepted together with remove_metadata; true where that is false.',
    })
  return removes === true && keepsTaken === true ? 'except-taken' : removes
}

const isWhole = (value: unknown, least: number, most: number): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most

const isLimit = (value: unknown): value is number | null =>
  value === null || isWhole(value, 0, Number.MAX_SAFE_INTEGER)
const isFileSize = (value: unknown): value is number | null =>
  value === null || isWhole(value, 1, Number.MAX_SAFE_INTEGER)
const isTypesOrNull = (value: unknown): value is readonly string[] | null => value === null || isTypes(value)
const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((entry) => typeof entry === 'string')
const isSizesOrNull = (value: unknown): value is readonly string[] | null =>
  value === null || (isTexts(value) && sizeEntriesOf(value) !== undefined)
const isNamesOrNull = (value: unknown): value is readonly string[] | null =>
  value === null || (isTexts(value) && publicNamesOf(value) !== undefined)
const isCropOrNull = (value: unknown): value is Crop | null =>
  value === null || (typeof value === 'string' && isCrop(value))
const isTrashDays = (value: unknown): value is number | null => value === null || isWhole(value, 0, maxDays)
const isItemDays = (value: unknown): value is number | null => value === null || isWhole(value, 1, maxDays)
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean'
