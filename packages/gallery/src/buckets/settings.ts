import type { BucketSettings, ManagedBucket } from '@mediabucket/client'
import { normalSizes, readNames } from './sizes.ts'

/** How the metadata of new pictures and videos is treated. */
export const metadataChoices = ['keep', 'remove', 'taken'] as const
type MetadataChoice = (typeof metadataChoices)[number]

const cropChoices = ['', 'center', 'attention'] as const
type CropChoice = (typeof cropChoices)[number]

/** The fields of a form with the settings of a bucket. Texts are empty for no limit. */
export interface SettingFields {
  readonly max_items: string
  /** In units. */
  readonly max_bytes: string
  /** The number of the unit: bytes are `1000 ** unit`. */
  readonly unit: string
  /** In units. */
  readonly max_file_size: string
  readonly file_unit: string
  /** Types such as `image/*`, with commas and spaces between them. */
  readonly types: string
  readonly trash_days: string
  readonly item_days: string
  readonly private: boolean
  readonly signed_pages: boolean
  readonly metadata: MetadataChoice
  readonly public_keys: boolean
  readonly public_list: boolean
  readonly url_uploads: boolean
  /** What cut sizes keep of pictures without a focus; empty for the setting of the service. */
  readonly crop: CropChoice
  /** Own sizes of pictures, such as `card=640x360:cover`, with spaces between them; empty for those of the service. */
  readonly variants: string
  /** The names of public sizes, with spaces between them. */
  readonly public_variants: string
}

/** Of a bucket that is created without settings. */
export const noSettings: SettingFields = {
  max_items: '',
  max_bytes: '',
  unit: '3',
  max_file_size: '',
  file_unit: '2',
  types: '',
  trash_days: '',
  item_days: '',
  private: false,
  signed_pages: false,
  metadata: 'keep',
  public_keys: false,
  public_list: false,
  url_uploads: true,
  ...{ crop: '', variants: '', public_variants: '' },
}

/** The largest unit in which the size has at most three decimals. */
function unitOf(bytes: number): number {
  let unit = 0
  while (unit < 5 && bytes > 0 && bytes % 1000 ** unit === 0 && bytes >= 1000 ** (unit + 1)) unit += 1
  return unit
}

export function fieldsOf(settings: ManagedBucket): SettingFields {
  const { max_items, max_bytes, trash_days, item_days, remove_metadata, keep_taken_at } = settings
  const [size, unit] = amountOf(max_bytes, noSettings.unit)
  const [fileSize, fileUnit] = amountOf(settings.max_file_size, noSettings.file_unit)
  return {
    max_items: textOf(max_items),
    ...{ max_bytes: size, unit, max_file_size: fileSize, file_unit: fileUnit },
    types: (settings.types ?? []).join(', '),
    trash_days: trash_days === 0 ? '' : textOf(trash_days),
    item_days: textOf(item_days),
    private: settings.private ?? false,
    signed_pages: settings.signed_pages ?? false,
    metadata: remove_metadata ? (keep_taken_at ? 'taken' : 'remove') : 'keep',
    public_keys: settings.public_keys ?? false,
    public_list: settings.public_list ?? false,
    url_uploads: settings.url_uploads ?? true,
    crop: cropChoices.find((choice) => choice === settings.crop) ?? '',
    variants: normalSizes((settings.variants ?? []).join(' ')),
    public_variants: (settings.public_variants ?? []).join(' '),
  }
}

const textOf = (limit: number | null | undefined): string => (typeof limit === 'number' ? `${limit}` : '')

const numberOf = (typed: string): number | null => (typed.trim() === '' ? null : Number(typed))

/** A limit of bytes as the texts of two fields: an amount, empty for no limit, and a unit. */
function amountOf(bytes: number | null | undefined, usual: string): readonly [amount: string, unit: string] {
  if (typeof bytes !== 'number') return ['', usual]
  const unit = bytes === 0 ? usual : `${unitOf(bytes)}`
  return [`${bytes / 1000 ** Number(unit)}`, unit]
}

const bytesOf = (typed: string, unit: string): number | null => {
  const amount = numberOf(typed)
  return amount === null ? null : Math.round(amount * 1000 ** Number(unit))
}

/** What a request must send so that a bucket with the settings `before` has those of the fields. */
export function changesOf(before: SettingFields, after: SettingFields): BucketSettings {
  const size = bytesOf(after.max_bytes, after.unit)
  const fileSize = bytesOf(after.max_file_size, after.file_unit)
  const types = after.types.split(/[\s,]+/).filter((type) => type !== '')
  const removes = after.metadata !== 'keep'
  return {
    ...(after.max_items !== before.max_items && { max_items: numberOf(after.max_items) }),
    ...(size !== bytesOf(before.max_bytes, before.unit) && { max_bytes: size }),
    ...(fileSize !== bytesOf(before.max_file_size, before.file_unit) && { max_file_size: fileSize }),
    ...(types.join(', ') !== before.types && { types: types.length === 0 ? null : types }),
    ...(after.trash_days !== before.trash_days && { trash_days: numberOf(after.trash_days) ?? 0 }),
    ...(after.item_days !== before.item_days && { item_days: numberOf(after.item_days) }),
    ...(after.private !== before.private && { private: after.private }),
    ...(after.signed_pages !== before.signed_pages && { signed_pages: after.signed_pages }),
    ...(after.metadata !== before.metadata && {
      remove_metadata: removes,
      ...(removes && { keep_taken_at: after.metadata === 'taken' }),
    }),
    ...(after.public_keys !== before.public_keys && { public_keys: after.public_keys }),
    ...(after.public_list !== before.public_list && { public_list: after.public_list }),
    ...(after.url_uploads !== before.url_uploads && { url_uploads: after.url_uploads }),
    ...(after.crop !== before.crop && { crop: after.crop === '' ? null : after.crop }),
    ...(normalSizes(after.variants) !== normalSizes(before.variants) && {
      variants: after.variants === '' ? null : readNames(after.variants),
    }),
    ...(after.public_variants !== before.public_variants && {
      public_variants: after.public_variants === '' ? null : readNames(after.public_variants),
    }),
  }
}

/** The fields of a draft that others have set to another value than the draft. */
export function conflictsOf(
  before: SettingFields,
  now: SettingFields,
  draft: Partial<SettingFields>,
): readonly (keyof SettingFields)[] {
  const fields: readonly (keyof SettingFields)[] = [
    ...(['max_items', 'max_bytes', 'unit', 'max_file_size', 'file_unit', 'types'] as const),
    ...(['trash_days', 'item_days'] as const),
    ...(['private', 'signed_pages', 'metadata', 'public_keys', 'public_list', 'url_uploads'] as const),
    ...(['crop', 'variants', 'public_variants'] as const),
  ]
  return fields.filter(
    (field) => field in draft && now[field] !== before[field] && now[field] !== draft[field],
  )
}
