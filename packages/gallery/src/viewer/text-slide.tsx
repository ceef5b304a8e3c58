import type { Media } from '@mediabucket/client'
import { useEffect, useState } from 'preact/hooks'
import { Choice } from '../components/controls.tsx'
import { formatSize } from '../format.ts'
import type { FileAccess } from '../service/file-access.ts'
import { decode, loadText, type TextStart } from '../service/text-preview.ts'
import { strings } from '../strings.ts'

/** The viewer shows at most this much of a text. Bytes. */
const maxPreviewBytes = 64 * 1024

/** Encodings that browsers know (WHATWG Encoding), by the names that people know. */
const encodings = {
  'utf-8': 'UTF-8',
  'utf-16le': 'UTF-16',
  'windows-1252': 'Windows-1252',
  'windows-1250': 'Windows-1250',
  'windows-1251': 'Windows-1251',
  'iso-8859-2': 'ISO-8859-2',
  'koi8-r': 'KOI8-R',
  'koi8-u': 'KOI8-U',
  shift_jis: 'Shift-JIS',
  'euc-jp': 'EUC-JP',
  gb18030: 'GB18030',
  big5: 'Big5',
  'euc-kr': 'EUC-KR',
} as const
type Encoding = keyof typeof encodings | 'auto'

interface TextSlideProps {
  readonly media: Media
  readonly files: FileAccess
  readonly onError: () => void
}

/** A text file as plain text. Its content never becomes markup. */
export function TextSlide({ media, files, onError }: TextSlideProps) {
  const { id, size, filename } = media
  const [start, setStart] = useState<TextStart | null>(null)
  const [encoding, setEncoding] = useState<Encoding>('auto')
  useEffect(() => {
    const aborter = new AbortController()
    loadText(files, media, maxPreviewBytes, aborter.signal).then(setStart, () => {
      if (!aborter.signal.aborted) onError()
    })
    return () => aborter.abort()
  }, [id, size])
  if (start === null) return <p role="status">{strings.viewer.loading}</p>
  const text =
    encoding === 'auto' ? decode(start) : new TextDecoder(encoding).decode(start.bytes, { stream: start.cut })
  return (
    <div class="slide-text">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it (WCAG 2.1.1) */}
      <section class="text-scroll" aria-label={filename ?? strings.unnamed} tabIndex={0}>
        <pre>{text}</pre>
      </section>
      {size === 0 ? (
        <p>{strings.slides.emptyText}</p>
      ) : (
        <div class="text-foot">
          <Choice
            label={strings.slides.encoding}
            options={{ auto: strings.slides.automatic, ...encodings }}
            value={encoding}
            onChoose={setEncoding}
          />
          {start.cut && <p>{strings.slides.textPreview(formatSize(maxPreviewBytes), formatSize(size))}</p>}
        </div>
      )}
    </div>
  )
}
