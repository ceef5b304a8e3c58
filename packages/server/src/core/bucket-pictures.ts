import type { UrlSettings } from './item-urls.ts'
import { builtInSizes, parseSizeEntries, type VariantSize, withSizes } from './variant-sizes.ts'
import { type Crop, createVariantList, isCrop, type VariantList } from './variants.ts'

/**
 * The options of a bucket about its pictures, as its rows are read: the crop, the names of its public variants and its sizes, separated by
 * semicolons, each empty if the bucket has none; null if it has none at all, as most buckets.
 */
export type StoredPictures = string | null

/** The settings of the service that apply where a bucket has no option. */
interface PictureDefaults {
  readonly variants?: readonly VariantSize[]
  readonly crop?: Crop
}

/** Texts that are remembered. Others are read again. */
const maxKnown = 1_000

/** What is computed once for each text. */
class Memory<Value> {
  readonly #values = new Map<string, Value>()

  of(text: string, compute: () => Value): Value {
    const known = this.#values.get(text)
    if (known !== undefined) return known
    const value = compute()
    if (this.#values.size >= maxKnown) this.#values.clear()
    this.#values.set(text, value)
    return value
  }
}

const splitNames = (text: string): readonly string[] => text.split(' ').filter((name) => name !== '')

/** The sizes of a bucket: its own with `thumb` and `medium` of the service, or all of the service. */
function sizesOf(text: string, service: readonly VariantSize[]): readonly VariantSize[] {
  const own = text === '' ? undefined : parseSizeEntries(splitNames(text))
  if (own === undefined) return service
  const builtIn = builtInSizes.map(({ name }) => name)
  return withSizes(
    service.filter(({ name }) => builtIn.includes(name)),
    own,
  )
}

/** The variants of buckets by their options. */
export class BucketVariants {
  readonly #defaults: PictureDefaults
  readonly #lists = new Memory<VariantList>()
  /** That of buckets without options. */
  readonly service: VariantList

  constructor(defaults: PictureDefaults) {
    this.#defaults = defaults
    this.service = this.#create('')
  }

  of(stored: StoredPictures): VariantList {
    return stored === null ? this.service : this.#lists.of(stored, () => this.#create(stored))
  }

  #create(stored: string): VariantList {
    const { variants = builtInSizes, crop: serviceCrop = 'center' } = this.#defaults
    const [ownCrop = '', publicNames = '', sizes = ''] = stored.split(';')
    return createVariantList(sizesOf(sizes, variants), {
      crop: isCrop(ownCrop) ? ownCrop : serviceCrop,
      publicNames: new Set(splitNames(publicNames)),
    })
  }
}

const urlsByText = new WeakMap<UrlSettings, Memory<UrlSettings>>()

/** The settings of the URLs of a bucket: `urls` with its sizes, and its public variants; and with names as a request states it, null if it does not. */
export function urlsOfBucket(
  urls: UrlSettings,
  { pictures, isPrivate }: { readonly pictures: StoredPictures; readonly isPrivate: boolean },
  names: boolean | null = null,
): UrlSettings {
  if (names !== null) return { ...urlsOfBucket(urls, { pictures, isPrivate }), names }
  if (pictures === null) return urls
  const known = urlsByText.get(urls) ?? new Memory<UrlSettings>()
  urlsByText.set(urls, known)
  return known.of(`${Number(isPrivate)}${pictures}`, () => {
    const [, publicNames = '', sizes = ''] = pictures.split(';')
    const variants = sizesOf(sizes, urls.variants ?? builtInSizes)
    return { ...urls, variants, publicVariants: new Set(isPrivate ? splitNames(publicNames) : []) }
  })
}
