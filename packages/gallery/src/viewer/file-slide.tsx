import type { Media } from '@mediabucket/client'
import { useEffect, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { type Kind, kindOf } from '../format/kind.ts'
import { formatSize } from '../format/size.ts'
import { isShownAsText } from '../service/text-preview.ts'
import { bytesUrl, downloadUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { isThumbnailRefused } from './picture-damage.ts'
import { TextSlide } from './text-slide.tsx'

/** A file that is not a picture: a player, a text, or a card if the browser cannot show it. */
export function FileSlide({ media }: { media: Media }) {
  const [failed, setFailed] = useState(false)
  const kind = kindOf(media.content_type)
  const src = bytesUrl(media.id)
  const name = media.filename ?? strings.unnamed
  const onError = () => setFailed(true)
  if (kind === 'video' && !failed) {
    return (
      // biome-ignore lint/a11y/useMediaCaption: the bucket holds no captions
      <video
        class="slide-video"
        controls
        playsInline
        preload="metadata"
        src={src}
        aria-label={name}
        onError={onError}
      />
    )
  }
  if (kind === 'audio' && !failed) {
    return (
      <div class="slide-card">
        <Icon name="audio" size={64} />
        <strong class="wrap">{name}</strong>
        {/* biome-ignore lint/a11y/useMediaCaption: the bucket holds no captions */}
        <audio controls preload="metadata" src={src} aria-label={name} onError={onError} />
      </div>
    )
  }
  const text = isShownAsText(media.content_type)
  if (text && !failed) return <TextSlide media={media} onError={onError} />
  const error = text ? strings.viewer.noText : strings.viewer.noPlayback
  return <FileCard media={media} kind={kind} about={failed ? error : aboutOf(kind)} />
}

const aboutOf = (kind: Kind): string =>
  kind === 'pdf' || kind === 'text'
    ? ''
    : kind === 'picture'
      ? strings.viewer.noPicture
      : strings.viewer.noPreview

/** A picture that the browser could not load. */
export function PictureErrorCard({ media }: { media: Media }) {
  const [damaged, setDamaged] = useState(false)
  useEffect(() => void isThumbnailRefused(media).then(setDamaged), [media])
  const about = damaged ? strings.viewer.damaged : strings.viewer.noPicture
  return <FileCard media={media} kind="picture" about={about} />
}

/** A file as a card with its name, its size and buttons to open or download it. */
function FileCard({ media, kind, about }: { media: Media; kind: Kind; about: string }) {
  const src = bytesUrl(media.id)
  const opens = kind === 'pdf' || media.content_type.startsWith('text/plain')
  return (
    <div class="slide-card">
      <Icon name={kind} size={64} />
      <strong class="wrap">{media.filename ?? strings.unnamed}</strong>
      <span>{formatSize(media.size)}</span>
      {about && <span class="slide-about">{about}</span>}
      <span class="slide-actions">
        {opens && (
          <a class="button primary" href={src} target="_blank" rel="noopener">
            <Icon name="external" />
            {kind === 'pdf' ? strings.viewer.openPdf : strings.viewer.open}
          </a>
        )}
        <a
          class={opens ? 'button' : 'button primary'}
          href={downloadUrl(media.id)}
          download={media.filename ?? media.id}
        >
          <Icon name="download" />
          {strings.viewer.download}
        </a>
      </span>
    </div>
  )
}
