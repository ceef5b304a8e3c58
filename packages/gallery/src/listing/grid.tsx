import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'
import { Tile } from './tile.tsx'

/** The items of the page; `stale` while those of another page are on their way. */
export function Grid({ stale }: { stale: boolean }) {
  const { listing, selection } = useGallery()
  const selecting = selection.count.value > 0
  return (
    <ul
      class={selecting ? 'grid selecting' : 'grid'}
      aria-label={strings.listing.grid}
      aria-busy={stale}
      data-stale={stale}
    >
      {listing.ids.value.map((id) => (
        <Tile key={id} id={id} />
      ))}
    </ul>
  )
}
