import type { Media } from '@mediabucket/client'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Placeholders } from '../listing/placeholders.ts'
import { fillPlaceholder } from './slide-placeholder.ts'

/** The placeholder and the thumbnail of an item, behind the larger picture that is being loaded. */
export function Backdrop({ media, placeholders }: { media: Media; placeholders: Placeholders }) {
  const element = useRef<HTMLSpanElement>(null)
  useLayoutEffect(() => {
    if (element.current) fillPlaceholder(element.current, media, placeholders, true)
  }, [media, placeholders])
  return <span ref={element} class="slide-backdrop" aria-hidden="true" />
}
