import type { Media } from '@mediabucket/client'
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { textPreview } from '../service/text-preview.ts'

/** A tile shows what fits of this much text. Bytes. */
const excerptBytes = 1024

/** The first lines of a text, as plain text; `children` until they are loaded, and if they cannot be. */
export function TextExcerpt({ media, children }: { media: Media; children: ComponentChildren }) {
  const { id, size } = media
  const [text, setText] = useState('')
  useEffect(() => {
    const aborter = new AbortController()
    textPreview(media, excerptBytes, aborter.signal).then(setText, () => undefined)
    return () => aborter.abort()
  }, [id, size])
  if (text.trim() === '') return <>{children}</>
  return (
    <span class="tile-excerpt" aria-hidden="true">
      {text}
    </span>
  )
}
