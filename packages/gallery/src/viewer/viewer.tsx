import { useGallery } from '../gallery.ts'
import { ViewerDialog } from './viewer-dialog.tsx'

/** Open while the address names an item. */
export function Viewer() {
  const { router, listing } = useGallery()
  const id = router.item.value
  if (id === null || listing.page.value === null) return null
  return <ViewerDialog id={id} />
}
