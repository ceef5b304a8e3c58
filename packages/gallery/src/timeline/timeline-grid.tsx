import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { formatDay } from '../format.ts'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { Tile } from '../tiles/tile.tsx'
import { useEdgeKeys } from './keys.tsx'
import type { PlacedItem, PlacedRow } from './layout.ts'
import { rowsNear, type ScrollLayout } from './scroll-layout.ts'
import { isByName } from './shown-list.ts'
import { currentView, useScrollLayout } from './use-scroll-layout.ts'

/** Rows within this many screens of the view are in the document. */
const drawWithin = 1

/** The items of the timeline by days, of which those near the screen are in the document. */
export function TimelineGrid({ list }: { list: boolean }) {
  const { timeline, selection, router } = useGallery()
  const container = useRef<HTMLDivElement>(null)
  const layout = useScrollLayout(container, list)
  useEdgeKeys()
  /** The item that has the focus, or will have it. */
  const [focused, setFocused] = useState<string | null>(null)
  /** The item to which a key moves the focus, until it has it. */
  const moving = useRef<string | null>(null)

  // The focus returns to the open file when the viewer is closed, so its tile must be in the document then.
  const opened = router.item.value
  useLayoutEffect(() => {
    if (opened !== null) setFocused(opened)
  }, [opened])

  const view = currentView(container)
  const near = layout === null || view === null ? [] : rowsNear(layout, view, drawWithin * view.height)
  const rows = layout === null ? [] : withFocused(layout, near, focused)
  const isDrawn = rows.some(({ items }) => items.some(({ media }) => media.id === focused))
  const inTabOrder = isDrawn ? focused : firstShown(layout, near, view?.top ?? 0)

  useLayoutEffect(() => {
    if (focused === null || moving.current !== focused) return
    const target = container.current?.querySelector<HTMLElement>(`[data-item="${CSS.escape(focused)}"]`)
    if (!target) return
    moving.current = null
    target.focus({ preventScroll: true })
    target.scrollIntoView({ block: 'nearest' })
  }, [focused, layout])

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.altKey || event.metaKey || layout === null) return
    const next = moveFrom(layout.placed, focused, event.key)
    if (next === null) return
    event.preventDefault()
    moving.current = next
    setFocused(next)
  }

  const isSmall = !list && layout?.measures.captionHeight === 0
  // The order of the rows: another list may be loading.
  const isNamed = isByName(layout?.measures.order ?? 'newest')
  const height = layout === null ? 0 : layout.above + layout.height + layout.below
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: arrow keys move the focus between the links in it
    <div
      ref={container}
      id="files"
      tabIndex={-1}
      class={`timeline ${list ? 'as-list' : 'as-grid'} ${isSmall ? 'without-names' : ''} ${selection.count.value > 0 ? 'selecting' : ''}`}
      aria-busy={timeline.loading.value}
      style={{ height: `${height}px` }}
      onKeyDown={onKeyDown}
      onFocusIn={(event) => {
        const id = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>('[data-id]') : null
        if (id?.dataset['id']) setFocused(id.dataset['id'])
      }}
    >
      {layout !== null &&
        byDay(rows).map(({ day, rows }) => (
          <DayGroup
            key={day}
            title={isNamed ? day || strings.timeline.noName : formatDay(day)}
            rows={rows}
            above={layout.above}
            list={list}
            inTabOrder={inTabOrder}
          />
        ))}
    </div>
  )
}

interface DayGroupProps {
  readonly title: string
  readonly rows: readonly PlacedRow[]
  readonly above: number
  readonly list: boolean
  readonly inTabOrder: string | null
}

function DayGroup({ title, rows, above, list, inTabOrder }: DayGroupProps) {
  const heading = rows[0]?.headed ? rows[0] : null
  return (
    <section aria-label={strings.timeline.day(title)}>
      {heading !== null && (
        <h2
          class="day"
          style={{
            transform: `translate(${heading.left}px, ${above + heading.top}px)`,
            maxWidth: `${heading.width}px`,
          }}
        >
          <span title={title}>{title}</span>
        </h2>
      )}
      <ul aria-label={strings.timeline.day(title)}>
        {rows.flatMap(({ items, itemsTop, pictureHeight }) =>
          items.map(({ media, left, width }) => (
            <Tile
              key={media.id}
              id={media.id}
              detailed={list}
              tabIndex={media.id === inTabOrder ? 0 : -1}
              style={{
                transform: `translate(${left}px, ${above + itemsTop}px)`,
                width: `${width}px`,
                '--picture-height': `${pictureHeight}px`,
              }}
            />
          )),
        )}
      </ul>
    </section>
  )
}

function byDay(rows: readonly PlacedRow[]): { day: string; rows: PlacedRow[] }[] {
  const days: { day: string; rows: PlacedRow[] }[] = []
  for (const row of rows) {
    const last = days.at(-1)
    if (last?.day === row.day) last.rows.push(row)
    else days.push({ day: row.day, rows: [row] })
  }
  return days
}

const rowOf = (rows: readonly PlacedRow[], id: string | null) =>
  rows.find(({ items }) => items.some(({ media }) => media.id === id))

/** The rows near the screen and that of the focus, which would be lost otherwise. */
function withFocused(
  layout: ScrollLayout,
  near: readonly PlacedRow[],
  focused: string | null,
): readonly PlacedRow[] {
  const row = focused === null ? undefined : rowOf(layout.placed, focused)
  if (row === undefined || near.includes(row)) return near
  return row.top < (near[0]?.top ?? 0) ? [row, ...near] : [...near, row]
}

const firstShown = (layout: ScrollLayout | null, near: readonly PlacedRow[], top: number): string | null =>
  (near.find(({ itemsTop }) => (layout?.above ?? 0) + itemsTop >= top) ?? near[0])?.items[0]?.media.id ?? null

const middle = ({ left, width }: PlacedItem) => left + width / 2

/** The items of rows that are beside one another. */
function linesOf(rows: readonly PlacedRow[]): { readonly items: readonly PlacedItem[] }[] {
  const lines = new Map<number, PlacedItem[]>()
  for (const { top, items } of rows) lines.set(top, [...(lines.get(top) ?? []), ...items])
  return [...lines.values()].map((items) => ({ items }))
}

/** The item to which a key moves the focus from another one; null if the key does not, or there is none. */
function moveFrom(placed: readonly PlacedRow[], from: string | null, key: string): string | null {
  const rows = linesOf(placed)
  const index = rows.findIndex(({ items }) => items.some(({ media }) => media.id === from))
  const row = rows[index]
  const place = row?.items.findIndex(({ media }) => media.id === from) ?? -1
  const item = row?.items[place]
  if (row === undefined || item === undefined) return null
  const nearest = (other: { readonly items: readonly PlacedItem[] } | undefined): PlacedItem | undefined =>
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
