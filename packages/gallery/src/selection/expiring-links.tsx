import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

/** The lifetimes of copied links. Seconds. */
const lifetimes = [3_600, 86_400, 604_800] as const

/** A menu to copy links that expire, of items of a private bucket. `menu` is the id of its element. */
export function ExpiringLinks({ menu, ids }: { menu: string; ids: () => readonly string[] }) {
  const { usage, sharing } = useGallery()
  if (usage.bucket.value?.private !== true) return null
  return (
    <>
      <button
        type="button"
        class="icon-button"
        popovertarget={menu}
        aria-label={strings.link.expiring}
        title={strings.link.expiring}
      >
        <Icon name="clock" />
      </button>
      <div id={menu} class="menu" popover="auto">
        {lifetimes.map((seconds) => (
          <button
            key={seconds}
            type="button"
            class="button quiet"
            popovertarget={menu}
            popovertargetaction="hide"
            onClick={() => void sharing.copyExpiringLinks(ids(), seconds)}
          >
            {strings.link.validFor(strings.link.lifetime(seconds / 3_600))}
          </button>
        ))}
      </div>
    </>
  )
}
