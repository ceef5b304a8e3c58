import type { Media } from '@mediabucket/client'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { type Kind, kindOf } from '../format/kind.ts'
import type { FileAccess } from '../service/file-access.ts'
import { isShownAsText } from '../service/text-preview.ts'
import { bytesUrl, isPrivate } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { FileCard } from './file-card.tsx'
import { isThumbnailRefused } from './picture-damage.ts'
import { TextSlide } from './text-slide.tsx'

/** A file that is not a picture: a player, a text, or a card if the browser cannot show it. */
export function FileSlide({ media: opened, files }: { media: Media; files: FileAccess }) {
  const [failed, setFailed] = useState(false)
  const [media, setMedia] = useState(opened)
  /** Where a player continues after its signed URL was renewed. Seconds. */
  const resumeAt = useRef(0)
  const kind = kindOf(media.content_type)
  const src = bytesUrl(media)
  const name = media.filename ?? strings.unnamed
  const onError = () => setFailed(true)
  const player = {
    src,
    controls: true,
    preload: 'metadata',
    'aria-label': name,
    async onError({ currentTarget }: { readonly currentTarget: HTMLMediaElement }) {
      resumeAt.current = currentTarget.currentTime
      const renewed = isPrivate(media) ? await files.renew(media.id) : null
      if (renewed && renewed.url !== media.url) setMedia(renewed)
      else setFailed(true)
    },
    onLoadedMetadata({ currentTarget }: { readonly currentTarget: HTMLMediaElement }) {
      if (resumeAt.current > 0) currentTarget.currentTime = resumeAt.current
      resumeAt.current = 0
    },
  } as const
  if (kind === 'video' && !failed) {
    const { width, height } = media
    return (
      <video
        class="slide-video"
        playsInline
        {...(media.variants ? { poster: bytesUrl(media, 'medium') } : {})}
        style={width && height ? { '--width': `${width}px`, '--ratio': `${width / height}` } : {}}
        {...player}
      />
    )
  }
  if (kind === 'audio' && !failed) {
    return (
      <div class="slide-card">
        <Icon name="audio" size={64} />
        <strong class="wrap">{name}</strong>
        <audio {...player} />
      </div>
    )
  }
  const text = isShownAsText(media.content_type)
  if (text && !failed) return <TextSlide media={media} onError={onError} />
  const error = text ? strings.viewer.noText : strings.viewer.noPlayback
  return <FileCard media={media} files={files} kind={kind} about={failed ? error : aboutOf(kind)} />
}

const aboutOf = (kind: Kind): string =>
  kind === 'pdf' || kind === 'text'
    ? ''
    : kind === 'picture'
      ? strings.viewer.noPicture
      : strings.viewer.noPreview

/** A picture that the browser could not load. */
export function PictureErrorCard({ media, files }: { media: Media; files: FileAccess }) {
  const [damaged, setDamaged] = useState(false)
  useEffect(() => void isThumbnailRefused(media).then(setDamaged), [media])
  const about = damaged ? strings.viewer.damaged : strings.viewer.noPicture
  return <FileCard media={media} files={files} kind="picture" about={about} />
}
