import type { Token } from '@mediabucket/client'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { IconButton } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { formatSize, kindOf } from '../format.ts'
import { refusalByLimits } from '../limit-texts.ts'
import { strings } from '../strings.ts'
import type { ChosenFile } from '../uploads/chosen-files.ts'

/** Rows of the list. */
const maxRows = 200

interface ChosenListProps {
  readonly files: readonly ChosenFile[]
  readonly token: Token
  readonly onRemove: (file: ChosenFile) => void
  readonly onSend: () => void
}

/** The files that were chosen and not sent yet, and the button that sends them. */
export function ChosenList({ files, token, onRemove, onSend }: ChosenListProps) {
  const { links, uploads } = strings
  const section = useRef<HTMLElement>(null)
  const draw = useMemo(createThumbnails, [])
  const keyOf = useMemo(createKeys, [])
  const reasons = useMemo(() => refusalsOf(files, token), [files, token])
  /** The row whose button gets the focus after the one before it was removed. */
  const focusing = useRef<number | null>(null)
  useLayoutEffect(() => {
    const row = focusing.current
    focusing.current = null
    if (row === null) return
    const buttons = section.current?.querySelectorAll<HTMLElement>('.icon-button')
    buttons?.[Math.min(row, buttons.length - 1)]?.focus()
  }, [files])
  const count = files.length
  useEffect(() => section.current?.scrollIntoView({ block: 'nearest' }), [count > 0])
  const bytes = files.reduce((sum, { file }) => sum + (file?.size ?? 0), 0)
  return (
    <section ref={section} class="upload-chosen" aria-label={links.chosen}>
      <div role="status">
        <h2>{links.chosenCount(count, formatSize(bytes))}</h2>
      </div>
      <ul class="upload-files">
        {files.slice(0, maxRows).map((chosen, row) => {
          const name = nameOf(chosen)
          const reason = reasons[row] ?? null
          return (
            <li key={keyOf(chosen)} class={reason === null ? 'tray-row' : 'tray-row failed'}>
              <Thumbnail file={chosen.file} draw={draw} />
              <div class="tray-text">
                <span class="tray-name" dir="auto">
                  {name}
                </span>
                <span class="tray-state">
                  {[...(chosen.file ? [formatSize(chosen.file.size)] : []), ...(reason ? [reason] : [])].join(
                    ' · ',
                  )}
                </span>
              </div>
              <IconButton
                icon="close"
                label={links.remove(name)}
                onClick={() => {
                  focusing.current = row
                  onRemove(chosen)
                }}
              />
            </li>
          )
        })}
      </ul>
      {count > maxRows && <p class="muted">{uploads.more(count - maxRows)}</p>}
      <p class="upload-send">
        <button type="button" class="button primary wide" onClick={onSend}>
          <Icon name="upload" />
          {links.send(count)}
        </button>
      </p>
    </section>
  )
}

/** Numbers files, so that rows keep their thumbnails when another one is removed. */
function createKeys(): (file: ChosenFile) => number {
  const keys = new WeakMap<ChosenFile, number>()
  let last = 0
  return (file) => {
    const key = keys.get(file) ?? ++last
    keys.set(file, key)
    return key
  }
}

const nameOf = ({ path }: ChosenFile): string => path.slice(path.lastIndexOf('/') + 1)

/** Why each file is certain to be refused; null if it may be accepted. */
function refusalsOf(files: readonly ChosenFile[], token: Token): (string | null)[] {
  const ahead = { items: 0, bytes: 0 }
  return files.map(({ file }) => {
    if (file === null) return null
    const reason = refusalByLimits(token, file, ahead)
    if (reason === null) {
      ahead.items += 1
      ahead.bytes += file.size
    }
    return reason
  })
}

type Draw = (file: File, canvas: HTMLCanvasElement) => Promise<boolean>

/** Of a thumbnail. Pixels. */
const height = 96

/** Draws one picture after the other: a photo of a phone takes 50 MB of memory while it is decoded. */
function createThumbnails(): Draw {
  let last: Promise<unknown> = Promise.resolve()
  return (file, canvas) => {
    const drawn = last.then(async () => {
      if (!canvas.isConnected) return false
      const bitmap = await createImageBitmap(file, { resizeHeight: height, resizeQuality: 'medium' })
      canvas.width = bitmap.width
      canvas.height = bitmap.height
      canvas.getContext('2d')?.drawImage(bitmap, 0, 0)
      bitmap.close()
      return true
    })
    last = drawn.catch(() => undefined)
    return drawn
  }
}

/** A thumbnail of a picture, or an icon of the kind of the file. */
function Thumbnail({ file, draw }: { file: File | null; draw: Draw }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [isDrawn, setDrawn] = useState(false)
  const kind = kindOf(file?.type ?? '')
  useEffect(() => {
    if (file === null || kind !== 'picture' || canvas.current === null) return
    // The browser may be unable to decode it.
    draw(file, canvas.current).then(setDrawn, () => undefined)
  }, [file])
  return (
    <span class="chosen-picture">
      {!isDrawn && <Icon name={kind} />}
      {kind === 'picture' && <canvas ref={canvas} hidden={!isDrawn} />}
    </span>
  )
}
