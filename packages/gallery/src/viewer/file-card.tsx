import { useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import type { Kind } from '../format/kind.ts'
import { formatSize } from '../format/size.ts'
import { bytesUrl, isPrivate, plainUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { Backdrop } from './backdrop.tsx'
import { downloadLink } from './download-link.ts'
import type { FileSlideProps } from './slide-props.ts'

interface FileCardProps extends FileSlideProps {
  readonly kind: Kind
  readonly about: string
}

/** A file as a card with its name and its size, or the first page of a PDF, and buttons to open or download it. */
export function FileCard({ media, files, placeholders, kind, about }: FileCardProps) {
  const [picture, setPicture] = useState<'loading' | 'shown' | 'none'>('loading')
  const opening = isPrivate(media)
    ? {
        href: plainUrl(media),
        onClick(event: Event) {
          event.preventDefault()
          void files.open(media).catch(() => files.save(media))
        },
      }
    : { href: bytesUrl(media) }
  const opens = kind === 'pdf' || media.content_type.startsWith('text/plain')
  const actions = (
    <span class="slide-actions">
      {opens && (
        <a class="button primary" {...opening} target="_blank" rel="noopener">
          <Icon name="external" />
          {kind === 'pdf' ? strings.viewer.openPdf : strings.viewer.open}
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
          src={bytesUrl(media, 'medium')}
          alt={strings.viewer.firstPage}
          onLoad={() => setPicture('shown')}
          onError={() => setPicture('none')}
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
