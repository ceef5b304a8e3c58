import { useEffect, useRef } from 'preact/hooks'
import { useGallery } from '../gallery-context.ts'

/** A step from an item to the next or previous page, while that page is loading. */
interface PageTurn {
  readonly from: string
  readonly page: number
  readonly to: 'first' | 'last'
}

export interface Navigation {
  /** The item to show: that of the URL, or the first or last item of the page after a page turn. */
  readonly shown: string
  /** The items to swipe through: those of the page, or the item alone if it is not on the page; null while unknown. */
  readonly ids: readonly string[] | null
  /** The index of the item on the page or in the loaded part of the timeline; -1 if it is not there. */
  readonly index: number
  /** The position of the item in the bucket, from 1, and the number of items; null if they are unknown. */
  readonly position: { readonly at: number; readonly of: number } | null
  /** Null if there is no previous item. */
  readonly previous: (() => void) | null
  /** Null if there is no next item. */
  readonly next: (() => void) | null
}

/** The position of an item on its page, and the steps to its neighbours, on other pages too. */
export function usePageNavigation(id: string): Navigation {
  const { listing, router } = useGallery()
  const turning = useRef<PageTurn | null>(null)
  const pageIds = listing.ids.value
  const page = router.page.value ?? 1
  const last = listing.page.value?.last_page ?? 1
  const loaded = listing.page.value?.current_page === page

  const turn = turning.current
  const turned = loaded && turn?.from === id && turn.page === page && !pageIds.includes(id)
  const target = (turned && (turn.to === 'first' ? pageIds[0] : pageIds.at(-1))) || null
  const shown = target ?? id
  const index = pageIds.indexOf(shown)
  useEffect(() => {
    if (target === null) return
    turning.current = null
    router.replace({ page, item: target })
  }, [target])

  const stepTo = (position: number) => {
    const item = pageIds[position]
    if (item) return () => router.replace({ page, item })
    if (position < 0 ? page <= 1 : page >= last) return null
    return () => {
      const nextPage = position < 0 ? page - 1 : page + 1
      turning.current = { from: shown, page: nextPage, to: position < 0 ? 'last' : 'first' }
      router.replace({ page: nextPage, item: shown })
    }
  }
  const onPage = loaded && index >= 0
  const from = listing.page.value?.from
  return {
    shown,
    ids: index >= 0 ? pageIds : loaded || !listing.loading.value ? [id] : null,
    index: loaded ? index : -1,
    position: onPage && from ? { at: from + index, of: listing.page.value?.total ?? 0 } : null,
    previous: onPage ? stepTo(index - 1) : null,
    next: onPage ? stepTo(index + 1) : null,
  }
}
