import type { Media } from '@mediabucket/client'
import { Icon } from '../components/icon.tsx'
import { formatDuration } from '../format/duration.ts'
import { kindOf } from '../format/kind.ts'

/** Marks a video, or another file with a duration, on its tile. */
export function DurationBadge({ media }: { media: Media }) {
  const { duration, content_type } = media
  const isKnown = typeof duration === 'number'
  if (!isKnown && kindOf(content_type) !== 'video') return null
  return (
    <span class="tile-duration">
      {isKnown && <time dateTime={`PT${Math.round(duration)}S`}>{formatDuration(duration)}</time>}
      <Icon name="play" size={14} />
    </span>
  )
}
