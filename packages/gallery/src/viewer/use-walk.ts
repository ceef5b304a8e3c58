import { useEffect, useRef } from 'preact/hooks'
import { useGallery } from '../gallery.ts'

/** Where an item stands on its page, and the ways to its neighbours: over the page's edge, and past items that went. */
export function useWalk(id: string): {
  readonly index: number
  readonly previous: (() => void) | null
  readonly next: (() => void) | null
} {
  const { listing, router } = useGallery()
  const lastIndex = useRef(-1)
  const cameFrom = useRef<'before' | 'after' | null>(null)
  const ids = listing.ids.value
  const loading = listing.loading.value
  const page = router.page.value
  const last = listing.page.value?.last_page ?? 1
  const index = ids.indexOf(id)

  useEffect(() => {
    if (index >= 0) lastIndex.current = index
    if (index >= 0 || loading) return
    const edge = cameFrom.current
    cameFrom.current = null
    // A neighbour takes the place of an item that was deleted; a link to an item that never was here says so.
    const place =
      edge === 'before' ? 0 : edge === 'after' ? ids.length - 1 : Math.min(lastIndex.current, ids.length - 1)
    const item = ids[place] ?? null
    if (item !== null) router.replace({ page, item })
    else if (lastIndex.current >= 0) router.replace({ page, item: null })
  }, [index, loading, ids, page, router])

  const to = (place: number) => {
    const item = ids[place]
    if (item) router.replace({ page, item })
  }
  const turn = (to: number, from: 'before' | 'after') => {
    cameFrom.current = from
    router.replace({ page: to, item: id })
  }
  const previous =
    index > 0 ? () => to(index - 1) : index === 0 && page > 1 ? () => turn(page - 1, 'after') : null
  const next =
    index >= 0 && index < ids.length - 1
      ? () => to(index + 1)
      : index >= 0 && page < last
        ? () => turn(page + 1, 'before')
        : null
  return { index, previous, next }
}
