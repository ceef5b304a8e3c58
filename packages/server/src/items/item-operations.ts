import { maxLabels } from '@mediabucket/client/rules'
import { type NamedItem, withName } from '../core/address-names.ts'
import { bucketMembers } from '../core/bucket-members.ts'
import { bucketDeleted, Fault, itemUnknown } from '../core/faults.ts'
import { focusOf } from '../core/focus.ts'
import { type ItemId, isItemId } from '../core/ids.ts'
import { type LabelChanges, labelRule } from '../core/item-labels.ts'
import { allVariants, type LinkSigner, mediaUrl, type UrlSettings } from '../core/item-urls.ts'
import { formatTimestamp } from '../core/times.ts'
import type { Actor } from '../core/token-rules.ts'
import { builtInSizes, variantDimensions } from '../core/variant-sizes.ts'
import { hasVariants } from '../core/variants.ts'
import type * as schemas from '../http/openapi/schemas.ts'
import type { ValueOf } from '../http/openapi/schemas.ts'
import type { OwnBucketObject } from '../http/openapi/usage-schemas.ts'
import { usageObject } from '../http/usage-object.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { isTrash } from '../storage/catalog/items/trash.ts'
import type {
  BucketId,
  Item,
  ItemDetails,
  ItemEdit,
  ItemTexts,
  NewItem,
  Preview,
} from '../storage/catalog/records.ts'

/** The bucket's item with this id; `id` may be any text. Throws Fault `media-unknown` (docs/interface.md A6, M3). */
export async function findItem(
  catalog: Pick<Catalog, 'item'>,
  bucketId: BucketId,
  id: string,
): Promise<Item> {
  const item = isItemId(id) ? await catalog.item(id) : null
  if (item === null || item.bucketId !== bucketId) throw itemUnknown()
  return item
}

/**
 * An item of any bucket by the last segment of its URL: its id, optionally with a dot and its extension
 * (docs/interface.md B1, B7); null if there is none. `name` may be any text.
 */
export function findByNameOperation(parts: { readonly catalog: Pick<Catalog, 'item'> }) {
  return async function findByName(name: string): Promise<Item | null> {
    const dot = name.indexOf('.')
    const id = dot < 0 ? name : name.slice(0, dot)
    const item = isItemId(id) ? await parts.catalog.item(id) : null
    if (item === null || isTrash(item.bucketId)) return null
    return dot < 0 || name.slice(dot + 1) === item.extension ? item : null
  }
}

export type EditItem = ReturnType<typeof editItemOperation>

export function editItemOperation({
  catalog,
  onFocused,
}: {
  readonly catalog: Pick<Catalog, 'item' | 'editItem'>
  /** Called after an edit of the focus of an item. Must return at once. */
  readonly onFocused: (id: ItemId) => void
}) {
  /**
   * Changes the texts of an item, and returns it (docs/interface.md M5). `id` may be any text. With `accepts`, changes it only if
   * `accepts` returns true for its present state. Throws Fault `media-unknown` and `precondition-failed`.
   */
  return async function editItem(
    bucketId: BucketId,
    id: string,
    edit: ItemEdit,
    accepts: ((item: ItemDetails) => boolean) | null,
    by: Actor,
  ): Promise<ItemDetails> {
    if (!isItemId(id)) throw itemUnknown()
    const expected = accepts === null ? null : await findItem(catalog, bucketId, id)
    if (expected !== null && !accepts?.(expected)) throw preconditionFailed()
    const edited = await catalog.editItem(bucketId, id, edit, expected, by)
    if (edited === 'missing') throw itemUnknown()
    // Another request has changed it in between.
    if (edited === 'changed') throw preconditionFailed()
    if (edited === 'full') throw tooManyLabels([id])
    if (edit.focus !== undefined) onFocused(id)
    return edited
  }
}

export type LabelItems = ReturnType<typeof labelItemsOperation>

export function labelItemsOperation({ catalog }: { readonly catalog: Pick<Catalog, 'labelItems'> }) {
  /** Changes the labels of all these items or of none (docs/interface.md M8). `ids` may be any texts. Throws Fault `json-malformed`. */
  return async function labelItems(
    bucketId: BucketId,
    ids: readonly string[],
    changes: LabelChanges,
    by: Actor,
  ): Promise<ValueOf<typeof schemas.LabelledItems>> {
    const unique = [...new Set(ids)]
    const { ids: found, full } = await catalog.labelItems(bucketId, unique.filter(isItemId), changes, by)
    if (full.length > 0) throw tooManyLabels(full)
    const labelled: ReadonlySet<string> = new Set(found)
    return {
      labelled: unique.filter((id) => labelled.has(id)),
      missing: unique.filter((id) => !labelled.has(id)),
    }
  }
}

function tooManyLabels(ids: readonly string[]): Fault {
  const detail = `An item has ${labelRule}. These items would have more: ${ids.slice(0, 10).join(', ')}${ids.length > 10 ? ' …' : ''}.`
  return new Fault('json-malformed', detail, {
    parameters: [{ parameter: 'labels', detail, maximum: maxLabels, unit: 'labels' }],
  })
}

export const preconditionFailed = (): Fault =>
  new Fault('precondition-failed', 'The item has changed: If-Match does not name its current ETag.')

/** The media object of an item, as clients receive it (docs/interface.md M1). */
type MediaObject = ValueOf<typeof schemas.MediaObject>

/** A URL of the bytes of an item as responses write it. */
export const urlOf = (urls: UrlSettings, url: string, item: NamedItem): string =>
  urls.names ? withName(urls, url, item) : url

const noTools: ReadonlySet<never> = new Set()

/** The time of the clock of a camera by ISO 8601, with its offset from UTC in minutes if that is known (docs/interface.md M9). */
function formatTaken(time: number, offset: number | null): string {
  const clock = formatTimestamp(time).slice(0, -1)
  if (offset === null || offset === 0) return offset === null ? clock : `${clock}Z`
  const minutes = Math.abs(offset)
  const digits = [Math.floor(minutes / 60), minutes % 60].map((part) => `${part}`.padStart(2, '0'))
  return `${clock}${offset < 0 ? '-' : '+'}${digits.join(':')}`
}

/** Without a copy of the bytes. */
const hexOf = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('hex')

/** A new item has no texts except its name. With `signer`, the URLs are signed. */
export function mediaObjectOf(
  urls: UrlSettings,
  item: NewItem & Partial<Preview & ItemTexts>,
  signer: LinkSigner | null = null,
): MediaObject {
  const sizes = hasVariants(item.contentType, urls.tools ?? noTools) ? (urls.variants ?? builtInSizes) : null
  const plain = urlOf(urls, mediaUrl(urls, item.id, item.extension), item)
  const url =
    signer === null
      ? plain
      : urlOf(urls, signer.sign(item, { variant: sizes === null ? null : allVariants }), item)
  const start = signer === null ? `${plain}?variant=` : `${url}&variant=`
  const { publicVariants } = urls
  const { width, height } = item
  return {
    id: item.id,
    url,
    filename: item.filename,
    content_type: item.contentType,
    size: item.size,
    sha256: hexOf(item.sha256),
    created_at: formatTimestamp(item.createdAt),
    taken_at: item.takenAt == null ? null : formatTaken(item.takenAt, item.takenOffset ?? null),
    expires_at: item.expiresAt == null ? null : formatTimestamp(item.expiresAt),
    width,
    height,
    thumbhash: item.thumbhash ? Buffer.from(item.thumbhash).toString('base64') : null,
    duration: item.duration == null ? null : item.duration / 1000,
    alt_text: item.altText ?? null,
    caption: item.caption ?? null,
    labels: item.labels ?? {},
    path: item.path ?? null,
    focus: item.focus == null ? null : focusOf(item.focus),
    variants:
      sizes &&
      Object.fromEntries(
        sizes.map(({ name }) => [
          name,
          publicVariants?.has(name) ? `${plain}?variant=${name}` : `${start}${name}`,
        ]),
      ),
    variant_sizes:
      sizes === null || width === null || height === null
        ? null
        : Object.fromEntries(sizes.map((size) => [size.name, variantDimensions(size, { width, height })])),
  }
}

/** A bucket as in responses (docs/interface.md Q3). */
export async function describeBucket(
  catalog: Pick<Catalog, 'findBucketWithUsage'>,
  bucketId: BucketId,
): Promise<ValueOf<typeof OwnBucketObject>> {
  const now = Date.now()
  const found = await catalog.findBucketWithUsage(bucketId, now)
  if (found === null) throw bucketDeleted()
  return { ...bucketMembers(found.bucket), usage_today: usageObject(found.usage, now) }
}
