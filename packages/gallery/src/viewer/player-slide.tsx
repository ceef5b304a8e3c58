import { useRef, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { bytesUrl, isPrivate } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { Backdrop } from './backdrop.tsx'
import type { FileSlideProps } from './slide-props.ts'

interface PlayerSlideProps extends FileSlideProps {
  readonly kind: 'video' | 'audio'
  readonly onError: () => void
}

/** A player. Until a video has its first frame, its placeholder and its thumbnail are shown in its place. */
export function PlayerSlide({ media: opened, kind, files, placeholders, onError }: PlayerSlideProps) {
  const [media, setMedia] = useState(opened)
  const [isDrawn, setDrawn] = useState(false)
  /** Where the player continues after its signed URL was renewed. Seconds. */
  const resumeAt = useRef(0)
  const name = media.filename ?? strings.unnamed
  const player = {
    src: bytesUrl(media),
    controls: true,
    preload: 'metadata',
    'aria-label': name,
    async onError({ currentTarget }: { readonly currentTarget: HTMLMediaElement }) {
      resumeAt.current = currentTarget.currentTime
      const renewed = isPrivate(media) ? await files.renew(media.id) : null
      if (renewed && renewed.url !== media.url) setMedia(renewed)
      else onError()
    },
    onLoadedMetadata({ currentTarget }: { readonly currentTarget: HTMLMediaElement }) {
      if (resumeAt.current > 0) currentTarget.currentTime = resumeAt.current
      resumeAt.current = 0
    },
  } as const
  if (kind === 'audio')
    return (
      <div class="slide-card">
        <Icon name="audio" size={64} />
        <strong class="wrap">{name}</strong>
        <audio {...player} />
      </div>
    )
  const { width, height } = media
  return (
    <div
      class="slide-player"
      style={width && height ? { '--width': `${width}px`, '--ratio': `${width / height}` } : {}}
    >
      {!isDrawn && <Backdrop media={opened} placeholders={placeholders} />}
      <video
        class="slide-video"
        playsInline
        {...(media.variants ? { poster: bytesUrl(media, 'medium') } : {})}
        {...player}
        onLoadedData={() => setDrawn(true)}
      />
    </div>
  )
}
