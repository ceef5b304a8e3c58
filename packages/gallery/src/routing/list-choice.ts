import { kindChoices, timeChoices, wordsOf } from '../timeline/item-list-query.ts'

/** What the timeline shows, as the address names it. */
export interface ListChoice {
  readonly kind: keyof typeof kindChoices
  readonly time: keyof typeof timeChoices
  /** Words of the name; empty for all names. */
  readonly name: string
  readonly order: (typeof orders)[number]
  readonly view: (typeof views)[number]
}

const orders = ['newest', 'oldest'] as const
const views = ['grid', 'list'] as const

/** What an address without fields shows. */
export const noChoice: ListChoice = { kind: 'all', time: 'all', name: '', order: 'newest', view: 'grid' }

/** Invalid values are ignored. */
export function parseChoice(fields: URLSearchParams): ListChoice {
  const kind = fields.get('kind') ?? ''
  const time = fields.get('time') ?? ''
  return {
    kind: isKey(kindChoices, kind) ? kind : noChoice.kind,
    time: isKey(timeChoices, time) ? time : noChoice.time,
    name: wordsOf(fields.get('name') ?? ''),
    order: orders.find((order) => order === fields.get('order')) ?? noChoice.order,
    view: views.find((view) => view === fields.get('view')) ?? noChoice.view,
  }
}

/** The fields of a choice that differ from `noChoice`, in a fixed order. */
export function formatChoice(choice: ListChoice = noChoice): string {
  const { kind, time, name, order, view } = choice
  const fields = new URLSearchParams()
  if (kind !== noChoice.kind) fields.set('kind', kind)
  if (time !== noChoice.time) fields.set('time', time)
  if (name !== '') fields.set('name', name)
  if (order !== noChoice.order) fields.set('order', order)
  if (view !== noChoice.view) fields.set('view', view)
  return `${fields}`
}

const isKey = <T extends object>(choices: T, text: string): text is Extract<keyof T, string> =>
  Object.hasOwn(choices, text)
