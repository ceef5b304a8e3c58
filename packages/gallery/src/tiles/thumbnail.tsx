import type { Media } from '@mediabucket/client'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import type { StillImageProps } from '../components/still-image.tsx'
import { kindOf, shortType } from '../format.ts'
import { useGallery } from '../gallery-context.ts'
import { standsStill } from '../service/motion.ts'
import { decode, hasExcerpt, loadText } from '../service/text-preview.ts'
import { pictureRetryDelay, pictureUrl } from '../service/thumbnail.ts'
import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'

/** Of a drawing on a canvas. Pixels. */
const drawingSide = 400

/** The thumbnail of an item, or an icon of its kind if it has none. */
export function Thumbnail({ media }: { media: Media | null }) {
  const [state, setState] = useState<'loading' | 'shown' | 'waiting' | 'none'>('loading')
  const tries = useRef(1)
  const { connection, mediaCache } = useGallery()
  const { lost } = connection
  const url = (media && pictureUrl(media)) ?? ''
  useEffect(() => {
    // A signed URL has been renewed.
    if (state !== 'none' && state !== 'waiting') return
    tries.current = 1
    setState('loading')
  }, [url])
  useEffect(() => {
    // A thumbnail that failed while the server was unreachable is requested again.
    if (lost.value || state !== 'none') return
    tries.current = 1
    setState('loading')
  }, [lost.value])
  useEffect(() => {
    if (state !== 'waiting') return
    let timer: ReturnType<typeof setTimeout> | undefined
    const unmount = new AbortController()
    const wait = async () => {
      const delay = await pictureRetryDelay(url, tries.current, unmount.signal)
      if (unmount.signal.aborted) return
      tries.current += 1
      if (delay === null) {
        setState('none')
        // A signed URL may have expired.
        if (media) void mediaCache.renew(media)
      } else timer = setTimeout(() => setState('loading'), delay)
    }
    void wait()
    return () => {
      unmount.abort()
      clearTimeout(timer)
    }
  }, [state, url])
  if (media === null) return <span class="tile-picture skeleton" />
  const kind = kindOf(media.content_type)
  if (pictureUrl(media) === null || state === 'none') {
    const icon = (
      <>
        <Icon name={kind} size={44} />
        <span class="tile-type" aria-hidden="true">
          {shortType(media.filename, media.content_type)}
        </span>
      </>
    )
    return (
      <span class={`tile-picture kind ${kind}`}>
        {hasExcerpt(media.content_type) ? <TextExcerpt media={media}>{icon}</TextExcerpt> : icon}
        {state === 'none' && <span class="tile-error">{strings.listing.noThumbnail}</span>}
      </span>
    )
  }
  const picture = {
    ...{ src: url, 'data-state': state },
    onLoad: () => setState('shown'),
    onError: () => setState('waiting'),
  }
  const placeholder = media.thumbhash && (
    <Placeholder thumbHash={media.thumbhash} loaded={state === 'shown'} />
  )
  return (
    <span class={`tile-picture ${kind} ${state === 'shown' || placeholder ? '' : 'skeleton'}`}>
      {placeholder}
      {state !== 'waiting' &&
        (standsStill(media) ? (
          <FirstFrame {...picture} alt="" side={media.variants ? undefined : drawingSide} />
        ) : (
          <img {...picture} alt="" loading="lazy" decoding="async" draggable={false} />
        ))}
    </span>
  )
}

/** A picture that stands still, when its code is loaded. */
function FirstFrame(picture: StillImageProps) {
  const code = useCode(() => import('../components/still-image.tsx'))
  return code === 'loading' || code === 'failed' ? null : <code.StillImage {...picture} />
}

/** A tile shows what fits of this much text. Bytes. */
const excerptBytes = 1024

/** The first lines of a text, as plain text; `children` until they are loaded, and if they cannot be. */
function TextExcerpt({ media, children }: { media: Media; children: ComponentChildren }) {
  const { files } = useGallery()
  const { id, size } = media
  const [text, setText] = useState('')
  useEffect(() => {
    const aborter = new AbortController()
    loadText(files, media, excerptBytes, aborter.signal).then(
      (start) => setText(decode(start)),
      () => undefined,
    )
    return () => aborter.abort()
  }, [id, size])
  if (text.trim() === '') return <>{children}</>
  return (
    <span class="tile-excerpt" aria-hidden="true">
      {text}
    </span>
  )
}

/** The transition of the style sheet has ended after this time. Milliseconds. */
const fadeTime = 300

/** The placeholder of a picture, which fades out when the picture is loaded. */
export function Placeholder({ thumbHash, loaded }: { thumbHash: string; loaded: boolean }) {
  const { placeholders } = useGallery()
  const canvas = useRef<HTMLCanvasElement>(null)
  const [ended, setEnded] = useState(false)
  useLayoutEffect(() => {
    if (canvas.current) placeholders.draw(canvas.current, thumbHash)
  }, [thumbHash, placeholders])
  useEffect(() => {
    if (!loaded) return
    const timer = setTimeout(() => setEnded(true), fadeTime)
    return () => clearTimeout(timer)
  }, [loaded])
  if (ended) return null
  return <canvas ref={canvas} class="placeholder" data-loaded={loaded} />
}
