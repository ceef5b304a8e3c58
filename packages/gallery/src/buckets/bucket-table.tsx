import type { ManagedBucket } from '@mediabucket/client'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { formatSize } from '../format.ts'
import { useService } from '../gallery-context.ts'
import { formatCount, locale } from '../strings/locale.ts'
import { strings } from '../strings.ts'
import { type BucketOrder, type Column, columnOf, formatPlace, isAscending, ordersOf } from './address.ts'
import { Sparkline } from './usage-chart.tsx'
import { drawnRows, useRowsInView } from './use-rows-in-view.ts'

interface BucketTableProps {
  /** Those that are loaded. */
  readonly rows: readonly ManagedBucket[]
  /** The number of all buckets. */
  readonly total: number
  readonly order: BucketOrder
}

/** Pixels. The style sheet has the same breakpoint. */
const narrow = '(width < 720px)'
const rowHeight = { wide: 56, narrow: 88 }

/** When so few loaded rows are left below the screen, more are loaded. */
const reserve = 40
/** Until the usage of the rows in view is requested. Milliseconds. */
const scrollPause = 150

/** The buckets as a table, of which only the rows around the screen are in the document. */
export function BucketTable({ rows, total, order }: BucketTableProps) {
  const { list, usages } = useService()
  const body = useRef<HTMLTableSectionElement>(null)
  const height = rowHeight[useIsNarrow() ? 'narrow' : 'wide']
  const view = useRowsInView(body, rows.length, height)
  const [focused, setFocused] = useState<number | null>(null)
  /** The row that is to get the focus. That which has it stays in the document until then: it receives the keys. */
  const [target, setTarget] = useState<number | null>(null)
  /** The target as of the last key: further keys may come before the next frame. */
  const next = useRef<number | null>(null)
  usePlaceOfReturn(body, rows, height)
  const hasMore = list.hasMore.value
  const { first, end } = view
  useEffect(() => {
    if (hasMore && end > rows.length - reserve) void list.loadMore()
  }, [hasMore, end, rows, list])
  useEffect(() => {
    const names = rows.slice(first, end).map(({ name }) => name)
    const timer = setTimeout(() => usages.want(names), scrollPause)
    return () => clearTimeout(timer)
  }, [usages, rows, first, end])

  /** Moves the focus to a row, which is drawn first if it is not in view. */
  function focusRow(index: number): void {
    if (index < 0 || index >= rows.length) return
    setTarget(index)
    next.current = index
    requestAnimationFrame(() => {
      if (next.current !== index) return
      next.current = null
      setTarget(null)
      const link = body.current?.querySelector<HTMLElement>(`[data-row="${index}"] a`)
      link?.focus()
      link?.scrollIntoView({ block: 'nearest' })
    })
  }
  const drawn = drawnRows(view, rows.length, [focused, target])
  const texts = strings.buckets.columns
  return (
    <table class="bucket-table" aria-label={strings.buckets.title} aria-rowcount={total + 1}>
      <thead>
        <tr aria-rowindex={1}>
          <SortedColumn column="name" order={order} />
          <SortedColumn column="items" order={order} />
          <SortedColumn column="bytes" order={order} />
          <th scope="col" class="bucket-trend">
            {texts.usage}
          </th>
          <SortedColumn column="created" order={order} />
        </tr>
      </thead>
      <tbody
        ref={body}
        onKeyDown={(event) => {
          const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
          const row = event.target instanceof Element ? event.target.closest('tr')?.dataset['row'] : undefined
          if (step === 0 || row === undefined) return
          event.preventDefault()
          focusRow((next.current ?? Number(row)) + step)
        }}
        onFocusOut={() => setFocused(null)}
      >
        {drawn.flatMap((index, position) => {
          const bucket = rows[index]
          if (!bucket) return []
          const gap = index - (position === 0 ? 0 : (drawn[position - 1] ?? 0) + 1)
          return [
            gap > 0 && <Gap key={`before ${index}`} height={gap * height} />,
            <BucketRow key={bucket.name} bucket={bucket} index={index} onFocus={() => setFocused(index)} />,
          ]
        })}
        <Gap key="end" height={(rows.length - 1 - (drawn.at(-1) ?? -1)) * height} />
      </tbody>
    </table>
  )
}

/** In place of rows that are not drawn. */
function Gap({ height }: { height: number }) {
  if (height <= 0) return null
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row of a table has no focus
    <tr class="bucket-gap" aria-hidden="true">
      <td colSpan={5} style={{ height: `${height}px` }} />
    </tr>
  )
}

function useIsNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(narrow).matches)
  useLayoutEffect(() => {
    const query = matchMedia(narrow)
    const update = () => setNarrow(query.matches)
    update()
    query.addEventListener('change', update)
    return () => query.removeEventListener('change', update)
  }, [])
  return isNarrow
}

/** Shows the list as it was left when a person returns to it. */
function usePlaceOfReturn(
  body: { readonly current: HTMLElement | null },
  rows: readonly ManagedBucket[],
  height: number,
): void {
  const { address, list } = useService()
  useLayoutEffect(() => {
    const { left } = list
    list.left = null
    if (left === null || !rows.some(({ name }) => name === left.opened)) return
    scrollTo(0, left.scrolled)
    requestAnimationFrame(() => {
      const link = body.current?.querySelector<HTMLElement>(`[data-name="${left.opened}"] a`)
      link?.focus({ preventScroll: true })
    })
  }, [])
  const scrolled = useRef(0)
  useEffect(() => {
    const note = () => {
      scrolled.current = scrollY
    }
    note()
    addEventListener('scroll', note, { passive: true })
    return () => {
      removeEventListener('scroll', note)
      const place = address.place.peek()
      if (place.at === 'bucket') list.left = { scrolled: scrolled.current, opened: place.bucket }
    }
  }, [height])
}

function SortedColumn({ column, order }: { column: Column; order: BucketOrder }) {
  const { address } = useService()
  const isCurrent = columnOf(order) === column
  const [first, reverse] = ordersOf[column]
  const ascending = isAscending(order)
  return (
    <th
      scope="col"
      class={`bucket-${column}`}
      aria-sort={isCurrent ? (ascending ? 'ascending' : 'descending') : undefined}
    >
      <button
        type="button"
        class="bucket-sort"
        onClick={() => {
          scrollTo(0, 0)
          address.list({ order: order === first ? reverse : first })
        }}
      >
        {strings.buckets.columns[column]}
        {isCurrent && <Icon name={ascending ? 'up' : 'down'} size={16} />}
      </button>
    </th>
  )
}

interface BucketRowProps {
  readonly bucket: ManagedBucket
  readonly index: number
  readonly onFocus: () => void
}

function BucketRow({ bucket, index, onFocus }: BucketRowProps) {
  const { usages } = useService()
  const { name, items, bytes, max_items, max_bytes, created_at } = bucket
  const texts = strings.buckets
  const created = new Date(created_at)
  return (
    <tr aria-rowindex={index + 2} data-row={index} data-name={name}>
      <th scope="row" class="bucket-name">
        <a href={formatPlace({ at: 'bucket', bucket: name, part: null })} title={name} onFocus={onFocus}>
          {name}
        </a>
        {bucket.private && (
          <span class="bucket-private" title={strings.listing.privateHint}>
            <Icon name="lock" size={15} />
            <span class="off-screen">{strings.listing.private}</span>
          </span>
        )}
      </th>
      <td class="bucket-items">
        <span class="bucket-label" aria-hidden="true">
          {texts.columns.items}{' '}
        </span>
        {max_items === null ? formatCount(items) : texts.of(formatCount(items), formatCount(max_items))}
      </td>
      <td class="bucket-bytes">
        <span>
          {max_bytes === null ? formatSize(bytes) : texts.of(formatSize(bytes), formatSize(max_bytes))}
        </span>
        <QuotaMeter bucket={bucket} />
      </td>
      <td class="bucket-trend">
        <Sparkline days={usages.of(name).value} />
      </td>
      <td class="bucket-created">
        <time dateTime={created_at}>
          {created.toLocaleDateString(locale.current, { dateStyle: 'medium' })}
        </time>
      </td>
    </tr>
  )
}

/** How much of the limit that is closest is used. */
export function QuotaMeter({ bucket }: { bucket: ManagedBucket }) {
  const { name, items, bytes, max_items, max_bytes } = bucket
  const shares = [
    ...(max_bytes === null ? [] : [bytes / Math.max(max_bytes, 1)]),
    ...(max_items === null ? [] : [items / Math.max(max_items, 1)]),
  ]
  if (shares.length === 0) return null
  return (
    <meter
      class="usage-meter"
      aria-label={strings.buckets.quotaOf(name)}
      min={0}
      max={1}
      high={0.9}
      value={Math.min(1, Math.max(...shares))}
    />
  )
}
