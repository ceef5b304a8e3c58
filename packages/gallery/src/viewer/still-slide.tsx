import { useEffect, useState } from 'preact/hooks'
import { restoreFocus } from '../components/modal.tsx'
import { StillImage } from '../components/still-image.tsx'
import { bytesUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { readMotion } from './moving-files.ts'
import { Backdrop, type FileSlideProps, PictureErrorCard } from './slides.tsx'

interface StillSlideProps extends FileSlideProps {
  /** Called when a person plays the picture, and when it turns out that it does not move. */
  readonly onShow: () => void
}

/** The first frame of a picture that may move, for people who asked for less motion, with a button that plays it. */
export function StillSlide({ media: opened, onShow, ...slide }: StillSlideProps) {
  const [media, setMedia] = useState(opened)
  const [source, setSource] = useState<'medium' | 'original' | 'none'>(
    opened.variants ? 'medium' : 'original',
  )
  const [isDrawn, setDrawn] = useState(false)
  const [isMoving, setMoving] = useState(false)
  useEffect(() => {
    const aborter = new AbortController()
    readMotion(slide.files, media, aborter.signal).then(
      (moves) => (moves ? setMoving(true) : onShow()),
      () => {
        if (!aborter.signal.aborted) setMoving(true)
      },
    )
    return () => aborter.abort()
  }, [])
  if (source === 'none') return <PictureErrorCard media={media} {...slide} />
  async function onError(): Promise<void> {
    // A signed URL may have expired.
    const renewed = await slide.files.renew(media)
    if (renewed) setMedia(renewed)
    else setSource(source === 'medium' ? 'original' : 'none')
  }
  return (
    <div class="slide-still">
      {!isDrawn && <Backdrop media={media} placeholders={slide.placeholders} />}
      <StillImage
        src={bytesUrl(media, source === 'medium' ? source : undefined)}
        alt={media.alt_text ?? media.filename ?? strings.unnamed}
        onLoad={() => setDrawn(true)}
        onError={() => void onError()}
      />
      {isMoving && (
        <div class="slide-play">
          <button
            type="button"
            class="button"
            onClick={() => {
              onShow()
              // The button is removed.
              restoreFocus()
            }}
          >
            {strings.slides.play}
          </button>
        </div>
      )}
    </div>
  )
}
