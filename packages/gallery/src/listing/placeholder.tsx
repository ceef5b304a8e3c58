import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useGallery } from '../gallery.ts'

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
