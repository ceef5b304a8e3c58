import type { PlacedItem, PlacedRow } from './layout.ts'

const middle = ({ left, width }: PlacedItem) => left + width / 2

/** The item to which a key moves the focus from another one; null if the key does not, or there is none. */
export function moveFrom(rows: readonly PlacedRow[], from: string | null, key: string): string | null {
  const index = rows.findIndex(({ items }) => items.some(({ media }) => media.id === from))
  const row = rows[index]
  const place = row?.items.findIndex(({ media }) => media.id === from) ?? -1
  const item = row?.items[place]
  if (row === undefined || item === undefined) return null
  const nearest = (other: PlacedRow | undefined): PlacedItem | undefined =>
    other?.items.toSorted(
      (a, b) => Math.abs(middle(a) - middle(item)) - Math.abs(middle(b) - middle(item)),
    )[0]
  const targets: Readonly<Record<string, () => PlacedItem | undefined>> = {
    ArrowLeft: () => row.items[place - 1] ?? rows[index - 1]?.items.at(-1),
    ArrowRight: () => row.items[place + 1] ?? rows[index + 1]?.items[0],
    ArrowUp: () => nearest(rows[index - 1]),
    ArrowDown: () => nearest(rows[index + 1]),
  }
  return targets[key]?.()?.media.id ?? null
}
