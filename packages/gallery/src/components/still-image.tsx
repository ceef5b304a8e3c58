import { useEffect, useRef } from 'preact/hooks'

export interface StillImageProps {
  readonly src: string
  readonly alt: string
  readonly class?: string
  readonly style?: Readonly<Record<string, string>>
  /** The longer side of a drawing (SVG), which has no pixels of its own. Default: as large as it says. */
  readonly side?: number | undefined
  readonly 'data-state'?: string
  readonly onLoad?: () => void
  readonly onError?: () => void
}

/** The first frame of a picture: what is drawn on a canvas does not move. */
export function StillImage({
  src,
  alt,
  onLoad,
  onError,
  side,
  class: name = '',
  ...attributes
}: StillImageProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const current = useRef({ onLoad, onError })
  current.current = { onLoad, onError }
  useEffect(() => {
    const image = new Image()
    image.onload = () => {
      if (canvas.current) draw(image, canvas.current, side)
      current.current.onLoad?.()
    }
    image.onerror = () => current.current.onError?.()
    image.src = src
    return () => {
      image.onload = image.onerror = null
      image.removeAttribute('src')
    }
  }, [src])
  const label = alt === '' ? ({ 'aria-hidden': true } as const) : { 'aria-label': alt }
  return <canvas ref={canvas} class={`still ${name}`} role="img" {...label} {...attributes} />
}

function draw(image: HTMLImageElement, canvas: HTMLCanvasElement, side: number | undefined): void {
  const [width, height] = [Math.max(image.naturalWidth, 1), Math.max(image.naturalHeight, 1)]
  const scale = side === undefined ? 1 : side / Math.max(width, height)
  canvas.width = Math.round(width * scale)
  canvas.height = Math.round(height * scale)
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height)
}
