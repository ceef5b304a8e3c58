import { useEffect } from 'preact/hooks'
import { useGallery } from '../gallery.ts'
import { takesKeys } from '../takes-keys.ts'

/** Arrow keys turn pages; Escape, Delete and Ctrl+A act on the selection, Ctrl+Z undoes a deletion. Inactive in text fields and below open dialogs. */
export function KeyboardShortcuts() {
  const { listing, router, selection, selectMany, selectAll, deletion, notices, canDelete } = useGallery()
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey || event.shiftKey) return
      if (takesKeys(event.target) || document.querySelector('dialog[open]')) return
      if (event.ctrlKey || event.metaKey) {
        const key = event.key.toLowerCase()
        if (key === 'a') void selectAll()
        else if (key !== 'z' || !notices.actOnLast()) return
        event.preventDefault()
        return
      }
      const last = listing.page.value?.last_page ?? 1
      const page = router.page.value
      if (page !== null && event.key === 'ArrowLeft' && page > 1)
        router.go({ page: Math.min(page - 1, last), item: null })
      else if (page !== null && event.key === 'ArrowRight' && page < last)
        router.go({ page: page + 1, item: null })
      else if (event.key === 'Escape' && selection.count.value > 0) selectMany.clear()
      else if (event.key === 'Delete' && canDelete) void deletion.request([...selection.ids.value])
      else return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [listing, router, selection, selectMany, selectAll, deletion, notices, canDelete])
  return null
}
