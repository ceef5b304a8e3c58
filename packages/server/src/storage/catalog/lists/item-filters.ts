import { containsAll, nameLine } from '../../../core/names.ts'
import { type ItemMember, itemPlaces } from '../items/item-columns.ts'
import { kindNumber, kindNumberOf } from '../items/item-kinds.ts'
import type { ItemDetails, ItemSelection } from '../records.ts'

/** Whether a selection has an item. */
export type ItemPredicate = (item: ItemDetails) => boolean

/** The time by which a list has an item, and that `from` and `to` are compared with. */
export const timeOf = (
  { by }: Pick<ItemSelection, 'by'>,
  { takenAt, createdAt }: Pick<ItemDetails, 'takenAt' | 'createdAt'>,
): number => (by === 'taken' ? (takenAt ?? createdAt) : createdAt)

/** Filters that are not equal to a member of an item, as predicates. A selection without the filter has no predicate. */
const predicates: Readonly<Record<string, (selection: ItemSelection) => ItemPredicate>> = {
  kind({ kind }) {
    const number = kind === null ? null : kindNumber(kind)
    return ({ contentType }) => kindNumberOf(contentType) === number
  },
  from: (selection) => (item) => timeOf(selection, item) >= (selection.from ?? Number.NEGATIVE_INFINITY),
  to: (selection) => (item) => timeOf(selection, item) < (selection.to ?? Number.POSITIVE_INFINITY),
  name:
    ({ name }) =>
    ({ filename }) =>
      containsAll(nameLine(filename), name ?? []),
  labels({ labels }) {
    const wanted = Object.entries(labels ?? {})
    return (item) => wanted.every(([key, value]) => item.labels?.[key] === value)
  },
  sha256({ sha256 }) {
    const hash = Buffer.from(sha256 ?? '', 'hex')
    return (item) => hash.equals(item.sha256)
  },
  path:
    ({ path }) =>
    (item) =>
      item.path?.startsWith(path ?? '') ?? false,
}

/** Members of a selection that exclude no item, but say where a list is and how it is ordered. */
const ofList: ReadonlySet<string> = new Set([
  'bucketId',
  'order',
  'by',
  'startName',
] satisfies (keyof ItemSelection)[])

/** The filters that a selection has, with their values. */
export const filtersOf = (selection: ItemSelection): [string, unknown][] =>
  Object.entries(selection).filter(([name, wanted]) => wanted != null && !ofList.has(name))

/** Those of the filters `names` that a selection has. */
export const filtersAmong = (selection: ItemSelection, names: ReadonlySet<string>): ReadonlySet<string> =>
  new Set(filtersOf(selection).flatMap(([name]) => (names.has(name) ? [name] : [])))

/** Whether a selection has a filter that `names` lacks. */
export const hasOtherFilter = (selection: ItemSelection, names: ReadonlySet<string>): boolean =>
  filtersOf(selection).some(([name]) => !names.has(name))

const isMember = (name: string): name is ItemMember => Object.hasOwn(itemPlaces, name)

/**
 * Returns a function that compares an item with the filters of a selection that `compared` lacks; null if there are none. A filter without a predicate
 * is compared with the member of its name. Throws RangeError if there is no such member.
 */
export function createFilter(selection: ItemSelection, compared: ReadonlySet<string>): ItemPredicate | null {
  const others = filtersOf(selection)
    .filter(([name]) => !compared.has(name))
    .map(([name, value]): ItemPredicate => {
      const predicate = Object.hasOwn(predicates, name) ? predicates[name] : undefined
      if (predicate !== undefined) return predicate(selection)
      if (!isMember(name)) throw new RangeError(`no search of items knows the filter ${name}`)
      return (item) => item[name] === value
    })
  return others.length === 0 ? null : (item) => others.every((isWanted) => isWanted(item))
}
