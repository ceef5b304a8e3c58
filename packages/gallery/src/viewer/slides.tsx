import type { Media } from '@mediabucket/client'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { formatSize, type Kind, kindOf } from '../format.ts'
import { downloadLink, type FileAccess } from '../service/file-access.ts'
import { standsStill } from '../service/motion.ts'
import { isShownAsText } from '../service/text-preview.ts'
import { pictureRetryDelay, pictureUrl } from '../service/thumbnail.ts'
import { bytesUrl, isPrivate, plainUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import type { Placeholders } from '../tiles/placeholders.ts'
import { openFile } from './open-file.ts'
import { isThumbnailRefused } from './picture-slide.ts'
import { TextSlide } from './text-slide.tsx'

/** What the slide of a file that is not a picture needs: slides are rendered outside GalleryContext. */
export interface FileSlideProps {
  readonly media: Media
  readonly files: FileAccess
  readonly placeholders: Placeholders
}

/** A file that is not a picture: a player, a text, or a card if the browser cannot show it. */
export function FileSlide({ media, ...slide }: FileSlideProps) {
  const [failed, setFailed] = useState(false)
  const kind = kindOf(media.content_type)
  const onError = () => setFailed(true)
  if ((kind === 'video' || kind === 'audio') && !failed)
    return <PlayerSlide media={media} kind={kind} onError={onError} {...slide} />
  const text = isShownAsText(media.content_type)
  if (text && !failed) return <TextSlide media={media} onError={onError} files={slide.files} />
  const error = text ? strings.slides.noText : strings.slides.noPlayback
  return <FileCard media={media} kind={kind} about={failed ? error : aboutOf(kind)} {...slide} />
}

const aboutOf = (kind: Kind): string =>
  kind === 'pdf' || kind === 'text'
    ? ''
    : kind === 'picture'
      ? strings.slides.noPicture
      : strings.slides.noPreview

/** A picture that the browser could not load. */
export function PictureErrorCard({ media, ...slide }: FileSlideProps) {
  const [damaged, setDamaged] = useState(false)
  useEffect(() => void isThumbnailRefused(media).then(setDamaged), [media])
  const about = damaged ? strings.slides.damaged : strings.slides.noPicture
  return <FileCard media={media} kind="picture" about={about} {...slide} />
}

interface PlayerSlideProps extends FileSlideProps {
  readonly kind: 'video' | 'audio'
  readonly onError: () => void
}

/** A player. Until a video has its first frame, its placeholder and its thumbnail are shown in its place. */
function PlayerSlide({ media: opened, kind, files, placeholders, onError }: PlayerSlideProps) {
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
      const renewed = await files.renew(media)
      if (renewed) setMedia(renewed)
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

interface FileCardProps extends FileSlideProps {
  readonly kind: Kind
  readonly about: string
}

/** A file as a card with its name and its size, or the first page of a PDF, and buttons to open or download it. */
function FileCard({ media: opened, files, placeholders, kind, about }: FileCardProps) {
  const [media, setMedia] = useState(opened)
  const [picture, setPicture] = useState<'loading' | 'shown' | 'none'>('loading')
  const [failures, setFailures] = useState(0)
  const unmount = useMemo(() => new AbortController(), [])
  useEffect(() => () => unmount.abort(), [unmount])
  async function onError(): Promise<void> {
    const renewed = await files.renew(media)
    if (renewed) return setMedia(renewed)
    const delay = await pictureRetryDelay(bytesUrl(media, 'medium'), failures + 1, unmount.signal)
    if (delay === null) setPicture('none')
    else setTimeout(() => setFailures(failures + 1), delay)
  }
  const opening = isPrivate(media)
    ? {
        href: plainUrl(media),
        onClick(event: Event) {
          event.preventDefault()
          void openFile(files, media).catch(() => files.save(media))
        },
      }
    : { href: bytesUrl(media) }
  const opens = kind === 'pdf' || media.content_type.startsWith('text/plain')
  const actions = (
    <span class="slide-actions">
      {opens && (
        <a class="button primary" {...opening} target="_blank" rel="noopener">
          <Icon name="external" />
          {kind === 'pdf' ? strings.slides.openPdf : strings.slides.open}
        </a>
      )}
      <a class={opens ? 'button' : 'button primary'} {...downloadLink(media, files.save)}>
        <Icon name="download" />
        {strings.viewer.download}
      </a>
    </span>
  )
  if (kind === 'pdf' && media.variants && picture !== 'none')
    return (
      <div class="slide-pdf">
        {picture === 'loading' && <Backdrop media={media} placeholders={placeholders} />}
        <img
          key={failures}
          src={bytesUrl(media, 'medium')}
          alt={strings.slides.firstPage}
          onLoad={() => setPicture('shown')}
          onError={() => void onError()}
        />
        {actions}
      </div>
    )
  return (
    <div class="slide-card">
      <Icon name={kind} size={64} />
      <strong class="wrap">{media.filename ?? strings.unnamed}</strong>
      <span>{formatSize(media.size)}</span>
      {about && <span class="slide-about">{about}</span>}
      {actions}
    </div>
  )
}

/** The placeholder and the thumbnail of an item, behind the larger picture that is being loaded. */
export function Backdrop({ media, placeholders }: { media: Media; placeholders: Placeholders }) {
  const element = useRef<HTMLSpanElement>(null)
  useLayoutEffect(() => {
    if (element.current) fillPlaceholder(element.current, media, placeholders, true)
  }, [media, placeholders])
  return <span ref={element} class="slide-backdrop" aria-hidden="true" />
}

/**
 * Fills the element that is shown until a picture is loaded: with its ThumbHash, and above that, if `withThumbnail`, with its
 * thumbnail, which the browser usually has in its cache.
 */
export function fillPlaceholder(
  element: Element,
  media: Media,
  placeholders: Placeholders,
  withThumbnail: boolean,
): void {
  if (element.childElementCount > 0) return
  if (media.thumbhash) {
    const canvas = document.createElement('canvas')
    placeholders.draw(canvas, media.thumbhash)
    element.append(canvas)
  }
  const url = withThumbnail && !standsStill(media) ? pictureUrl(media) : null
  if (url !== null) element.append(Object.assign(new Image(), { src: url, alt: '' }))
}
