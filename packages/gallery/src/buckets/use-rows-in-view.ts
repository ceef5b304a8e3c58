import type { RefObject } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'

/** Rows that are drawn above and below the screen. */
const overscan = 8

/** The first row in view, and the first one below it. */
export interface RowsInView {
  readonly first: number
  readonly end: number
}

/** Which of `count` rows of this height (pixels) are in view, as the page is scrolled. */
export function useRowsInView(
  body: RefObject<HTMLElement | null>,
  count: number,
  height: number,
): RowsInView {
  const [{ first, end }, setRange] = useState<RowsInView>({ first: 0, end: 30 })
  useLayoutEffect(() => {
    const update = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0
      const first = Math.max(0, Math.floor(-top / height))
      const end = Math.ceil((innerHeight - top) / height)
      setRange((before) => (before.first === first && before.end === end ? before : { first, end }))
    }
    update()
    addEventListener('scroll', update, { passive: true })
    addEventListener('resize', update)
    return () => {
      removeEventListener('scroll', update)
      removeEventListener('resize', update)
    }
  }, [body, count, height])
  return { first: Math.min(first, count), end: Math.min(Math.max(end, 0), count) }
}

/** The rows that are drawn: those in view, some around them, and the `kept` ones, in their order. */
export function drawnRows(
  { first, end }: RowsInView,
  count: number,
  kept: readonly (number | null)[],
): number[] {
  const from = Math.max(0, first - overscan)
  const to = Math.min(count, end + overscan)
  const rows = new Set(Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index))
  for (const row of kept) if (row !== null && row < count) rows.add(row)
  return [...rows].toSorted((one, other) => one - other)
}
