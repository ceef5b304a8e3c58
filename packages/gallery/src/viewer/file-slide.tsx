import { useEffect, useState } from 'preact/hooks'
import { type Kind, kindOf } from '../format/kind.ts'
import { isShownAsText } from '../service/text-preview.ts'
import { strings } from '../strings.ts'
import { FileCard } from './file-card.tsx'
import { isThumbnailRefused } from './picture-damage.ts'
import { PlayerSlide } from './player-slide.tsx'
import type { FileSlideProps } from './slide-props.ts'
import { TextSlide } from './text-slide.tsx'

/** A file that is not a picture: a player, a text, or a card if the browser cannot show it. */
export function FileSlide({ media, ...slide }: FileSlideProps) {
  const [failed, setFailed] = useState(false)
  const kind = kindOf(media.content_type)
  const onError = () => setFailed(true)
  if ((kind === 'video' || kind === 'audio') && !failed)
    return <PlayerSlide media={media} kind={kind} onError={onError} {...slide} />
  const text = isShownAsText(media.content_type)
  if (text && !failed) return <TextSlide media={media} onError={onError} />
  const error = text ? strings.viewer.noText : strings.viewer.noPlayback
  return <FileCard media={media} kind={kind} about={failed ? error : aboutOf(kind)} {...slide} />
}

const aboutOf = (kind: Kind): string =>
  kind === 'pdf' || kind === 'text'
    ? ''
    : kind === 'picture'
      ? strings.viewer.noPicture
      : strings.viewer.noPreview

/** A picture that the browser could not load. */
export function PictureErrorCard({ media, ...slide }: FileSlideProps) {
  const [damaged, setDamaged] = useState(false)
  useEffect(() => void isThumbnailRefused(media).then(setDamaged), [media])
  const about = damaged ? strings.viewer.damaged : strings.viewer.noPicture
  return <FileCard media={media} kind="picture" about={about} {...slide} />
}
