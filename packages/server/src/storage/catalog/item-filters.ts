import { containsAll, nameLine } from '../../core/names.ts'
import { itemPlaces } from './item-columns.ts'
import { kindNumber, kindNumberOf } from './item-kinds.ts'
import type { ItemDetails, ItemSelection } from './records.ts'

/** Members of a selection that exclude no item, but say where a list is and how it is ordered. */
const ofList = ['bucketId', 'order', 'by', 'startName'] as const satisfies readonly (keyof ItemSelection)[]

export type ItemFilterName = Exclude<keyof ItemSelection, (typeof ofList)[number]>

/** The filters that a selection has, also those that no search knows. */
export const filtersOf = (selection: ItemSelection): ItemFilterName[] =>
  namesOf(selection).filter((name) => selection[name] != null)

const namesOf = (selection: ItemSelection): ItemFilterName[] => Object.keys(selection).filter(isFilterName)
const isFilterName = (name: string): name is ItemFilterName => !ofList.some((other) => other === name)

type IsWanted = (item: ItemDetails) => boolean
type Comparison<Filter extends ItemFilterName> = (wanted: NonNullable<ItemSelection[Filter]>) => IsWanted

/** Filters with the name of a member that has no more than one number or flag. */
type OfMember = {
  [Name in ItemFilterName & keyof ItemDetails]: NonNullable<ItemDetails[Name]> extends number | boolean
    ? Name
    : never
}[ItemFilterName & keyof ItemDetails]

/** How a filter compares items; other filters compare the member with their name. */
const comparisons: { readonly [Name in Exclude<ItemFilterName, OfMember>]: Comparison<Name> } & {
  readonly [Name in OfMember]?: Comparison<Name>
} = {
  kind(kind) {
    const number = kindNumber(kind)
    return ({ contentType }) => kindNumberOf(contentType) === number
  },
  from: (from) => (item) => item.createdAt >= from,
  to: (to) => (item) => item.createdAt < to,
  name: (terms) => (item) => containsAll(nameLine(item.filename), terms),
  labels(labels) {
    const wanted = Object.entries(labels)
    return (item) => wanted.every(([key, value]) => item.labels?.[key] === value)
  },
  sha256(sha256) {
    const hash = Buffer.from(sha256, 'hex')
    return (item) => hash.equals(item.sha256)
  },
  path: (start) => (item) => item.path?.startsWith(start) ?? false,
}

const byName: { readonly [Name in ItemFilterName]?: Comparison<Name> } = comparisons

/** Null if the selection does not have the filter. Throws RangeError if nothing says how to compare items. */
function comparisonOf<Name extends ItemFilterName>(selection: ItemSelection, name: Name): IsWanted | null {
  const wanted = selection[name]
  if (wanted == null) return null
  const compare = byName[name]
  if (compare !== undefined) return compare(wanted)
  if (!isMember(name)) throw new RangeError(`no search of items knows the filter ${name}`)
  return (item) => item[name] === wanted
}

const isMember = (name: string): name is keyof ItemDetails => Object.hasOwn(itemPlaces, name)

/** Returns a function that compares all filters of a selection with an item, except the time at which it was taken. Throws RangeError for an unknown filter. */
export function createFilter(selection: ItemSelection): IsWanted {
  const tests = filtersOf(selection).flatMap((name) => comparisonOf(selection, name) ?? [])
  return (item) => tests.every((isWanted) => isWanted(item))
}
