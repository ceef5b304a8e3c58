import { useEffect, useRef } from 'preact/hooks'
import { useGallery } from '../gallery-context.ts'
import type { Navigation } from './use-page-navigation.ts'

/** Items on either side of the open one that can be swiped to at once. */
const reach = 30

/** The position of an item in the timeline, and the steps to its neighbours. */
export function useTimelineNavigation(id: string): Navigation {
  const { timeline, router } = useGallery()
  const loaded = timeline.loaded.value
  const all = timeline.ids.value
  const index = all.indexOf(id)
  /** The items to swipe through. They change as rarely as possible, because new ones open PhotoSwipe again. */
  const swiped = useRef<readonly string[]>([])
  const place = swiped.current.indexOf(id)
  const isWithin = place > 0 && place < swiped.current.length - 1
  const start = Math.max(0, index - reach)
  const around = all.slice(start, index + reach + 1)
  const known = new Set(all)
  if (index >= 0 && (!isWithin || swiped.current.some((item) => !known.has(item)))) swiped.current = around

  const nearStart = index >= 0 && index < reach
  const nearEnd = index >= 0 && index >= all.length - reach
  useEffect(() => {
    if (nearStart) void timeline.extend(false)
  }, [nearStart, loaded, timeline])
  useEffect(() => {
    if (nearEnd) void timeline.extend(true)
  }, [nearEnd, loaded, timeline])

  const stepTo = (item: string | undefined) => (item === undefined ? null : () => router.show(item))
  const matches = timeline.matches.value
  const total = matches?.isExact ? matches.count : timeline.total.value
  return {
    shown: id,
    ids: index >= 0 ? swiped.current : loaded === null ? null : [id],
    index,
    position:
      index < 0 || loaded === null || total === null ? null : { at: loaded.before + index + 1, of: total },
    previous: index < 0 ? null : stepTo(all[index - 1]),
    next: index < 0 ? null : stepTo(all[index + 1]),
  }
}
