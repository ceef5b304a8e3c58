import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { useGallery } from '../gallery-context.ts'
import { measuresFor } from './layout.ts'
import {
  distanceFrom,
  itemsFarFrom,
  layOut,
  positionAt,
  rowsNear,
  type ScrollLayout,
  type View,
} from './scroll-layout.ts'
import { isFiltered } from './shown-list.ts'

/** Items are dropped from memory only if there are more. */
const maxItems = 500
/** The distance to the start or end of the loaded part at which more is loaded, in screens. */
const loadWithin = 1.5
/** The distance at which items may be dropped, in screens. */
const dropBeyond = 3
/** The scroll position must not change for this time before the items at a distant position are loaded. Milliseconds. */
const settleTime = 120

/** The view of a container that scrolls with the page, below the sticky header. */
function viewOf(container: HTMLElement): View {
  const covered = document.querySelector('.header')?.clientHeight ?? 0
  return { top: covered - container.getBoundingClientRect().top, height: innerHeight - covered }
}

/**
 * Lays out the loaded part of the timeline in `container`, and loads, drops and replaces items as the page is scrolled. Returns
 * null until the items and the width are known.
 */
export function useScrollLayout(
  container: RefObject<HTMLElement | null>,
  list: boolean,
): ScrollLayout | null {
  const { timeline, shownList } = useGallery()
  // The few items of a search would be scattered over many days.
  const byMonth = isFiltered(shownList.filter.value)
  const order = shownList.order.value
  const part = timeline.loaded.value
  const [width, setWidth] = useState(0)
  const [, redraw] = useState(0)
  const current = useRef<ScrollLayout | null>(null)
  const measures = useMemo(() => measuresFor(width, list, byMonth, order), [width, list, byMonth, order])

  useLayoutEffect(() => {
    const element = container.current
    if (element === null) return
    const measure = () => setWidth(element.clientWidth)
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    measure()
    return () => observer.disconnect()
  }, [container])

  const scroll = useRef({ by: 0, to: null as number | null })
  const element = container.current
  const known = current.current
  if (
    element !== null &&
    part !== null &&
    width > 0 &&
    (known?.part !== part || known.measures !== measures)
  ) {
    const { layout, scrollBy, scrollTo } = layOut(known, part, measures, viewOf(element))
    current.current = layout
    scroll.current = { by: scrollBy, to: scrollTo }
  }
  const layout = part === null ? null : current.current

  // Before the browser paints, so that nothing is seen to move.
  useLayoutEffect(() => {
    const { by, to } = scroll.current
    scroll.current = { by: 0, to: null }
    if (element === null || (by === 0 && to === null)) return
    const distance = to === null ? by : to - viewOf(element).top
    if (Math.abs(distance) >= 1) scrollBy({ top: distance, behavior: 'instant' })
  }, [layout])

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let drawn = ''
    const update = () => {
      clearTimeout(timer)
      const now = current.current
      // A layout of other items than those loaded is about to be replaced.
      if (container.current === null || now === null || now.part !== timeline.loaded.peek()) return
      if (timeline.loading.peek()) return
      const view = viewOf(container.current)
      const rows = rowsNear(now, view, view.height)
      const shown = `${rows[0]?.items[0]?.media.id} ${rows.at(-1)?.items[0]?.media.id}`
      if (shown !== drawn) redraw((count) => count + 1)
      drawn = shown
      const distance = distanceFrom(now, view)
      if (Math.abs(distance) > view.height / 2 && timeline.total.peek() !== null) {
        timer = setTimeout(() => void timeline.goTo(positionAt(now, view)), settleTime)
        return
      }
      const near = loadWithin * view.height
      if (now.part.before > 0 && view.top < now.above + near) void timeline.extend(false)
      else if (now.part.after > 0 && view.top + view.height > now.above + now.height - near)
        void timeline.extend(true)
      else if (now.part.items.length > maxItems && distance === 0) {
        const [first, last] = itemsFarFrom(now, view, dropBeyond * view.height)
        if (first + last >= maxItems / 4) timeline.trim(first, last)
      }
    }
    update()
    addEventListener('scroll', update, { passive: true })
    addEventListener('resize', update)
    return () => {
      clearTimeout(timer)
      removeEventListener('scroll', update)
      removeEventListener('resize', update)
    }
  }, [layout, timeline])
  return layout
}

/** The view of the container at this moment; null before it is shown. */
export const currentView = (container: RefObject<HTMLElement | null>): View | null =>
  container.current === null ? null : viewOf(container.current)
