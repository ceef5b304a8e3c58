import { useEffect } from 'preact/hooks'
import { useGallery } from '../gallery.ts'

/** Arrows turn pages; Escape and Delete are for the selection. Not while somebody types, or a dialog is open. */
export function KeyboardShortcuts() {
  const { listing, router, selection, deletion, canDelete } = useGallery()
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return
      if (isTyping(event.target) || document.querySelector('dialog[open]')) return
      const last = listing.page.value?.last_page ?? 1
      const page = router.page.value
      if (event.key === 'ArrowLeft' && page > 1) router.go({ page: Math.min(page - 1, last), item: null })
      else if (event.key === 'ArrowRight' && page < last) router.go({ page: page + 1, item: null })
      else if (event.key === 'Escape' && selection.count.value > 0) selection.clear()
      else if (event.key === 'Delete' && canDelete) deletion.ask([...selection.ids.value])
      else return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [listing, router, selection, deletion, canDelete])
  return null
}

/** Boxes to tick do nothing with arrows, so they do not count. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof Element && target.matches('input:not([type=checkbox]), textarea, select, audio, video')
