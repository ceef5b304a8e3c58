import { useEffect, useRef } from 'preact/hooks'
import { useGallery } from '../gallery.ts'

/** A step over the edge of a page, from this item, until that page is there. */
interface Turn {
  readonly from: string
  readonly page: number
  readonly to: 'first' | 'last'
}

interface Navigation {
  /** The item that is shown: the one of the address, or the one that a step over the page's edge leads to. */
  readonly shown: string
  /** What can be swiped through: the page, or the item alone when it is not on the page; null while that is not known. */
  readonly row: readonly string[] | null
  /** On the page; -1 when it is not. */
  readonly index: number
  readonly previous: (() => void) | null
  readonly next: (() => void) | null
}

/** Where an item stands on its page, and the ways to its neighbours, over the page's edge too. */
export function useNavigation(id: string): Navigation {
  const { listing, router } = useGallery()
  const turning = useRef<Turn | null>(null)
  const ids = listing.ids.value
  const page = router.page.value
  const last = listing.page.value?.last_page ?? 1
  const arrived = listing.page.value?.current_page === page

  const turn = turning.current
  const over = arrived && turn?.from === id && turn.page === page && !ids.includes(id)
  const edge = (over && (turn.to === 'first' ? ids[0] : ids.at(-1))) || null
  const shown = edge ?? id
  const index = ids.indexOf(shown)
  useEffect(() => {
    if (edge === null) return
    turning.current = null
    router.replace({ page, item: edge })
  }, [edge])

  const step = (place: number) => {
    const item = ids[place]
    if (item) return () => router.replace({ page, item })
    if (place < 0 ? page <= 1 : page >= last) return null
    return () => {
      const there = place < 0 ? page - 1 : page + 1
      turning.current = { from: shown, page: there, to: place < 0 ? 'last' : 'first' }
      router.replace({ page: there, item: shown })
    }
  }
  const walks = arrived && index >= 0
  return {
    shown,
    row: index >= 0 ? ids : arrived || !listing.loading.value ? [id] : null,
    index: arrived ? index : -1,
    previous: walks ? step(index - 1) : null,
    next: walks ? step(index + 1) : null,
  }
}
