import type { Media } from '@mediabucket/client'
import { useEffect, useState } from 'preact/hooks'
import { formatSize } from '../format/size.ts'
import { textPreview } from '../service/text-preview.ts'
import { strings } from '../strings.ts'

/** The viewer shows at most this much of a text. Bytes. */
const maxPreviewBytes = 64 * 1024

/** A text file as plain text. Its content never becomes markup. */
export function TextSlide({ media, onError }: { media: Media; onError: () => void }) {
  const { id, size, filename } = media
  const [text, setText] = useState<string | null>(null)
  useEffect(() => {
    const aborter = new AbortController()
    textPreview(media, maxPreviewBytes, aborter.signal).then(setText, () => {
      if (!aborter.signal.aborted) onError()
    })
    return () => aborter.abort()
  }, [id, size])
  if (text === null) return <p role="status">{strings.viewer.loading}</p>
  return (
    <div class="slide-text">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it (WCAG 2.1.1) */}
      <section class="text-scroll" aria-label={filename ?? strings.unnamed} tabIndex={0}>
        <pre>{text}</pre>
      </section>
      {size === 0 && <p>{strings.viewer.emptyText}</p>}
      {size > maxPreviewBytes && (
        <p>{strings.viewer.textPreview(formatSize(maxPreviewBytes), formatSize(size))}</p>
      )}
    </div>
  )
}
