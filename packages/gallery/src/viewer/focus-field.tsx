import type { Focus, Media } from '@mediabucket/client'
import { useId, useRef } from 'preact/hooks'
import { StillImage } from '../components/still-image.tsx'
import { standsStill } from '../service/motion.ts'
import { bytesUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { type Crop, cropsOf, positionIn } from './crops.ts'

interface FocusFieldProps {
  readonly media: Media
  readonly focus: Focus | null
  readonly readOnly: boolean
  /** The focus that others have saved in the meantime; undefined if they have not. */
  readonly theirs: Focus | null | undefined
  readonly onChange: (focus: Focus | null) => void
  /** Called when a person takes that of the others. */
  readonly onTaken: () => void
}

/** How far an arrow key moves the focus, and with Shift. */
const [step, largeStep] = [0.01, 0.1]

/** The longer side of a crop as it is shown. Pixels. */
const cropSide = 132

const steps: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
}

/** The service stores as many digits. */
const share = (value: number): number => Math.round(Math.min(Math.max(value, 0), 1) * 10_000) / 10_000

/** The smallest picture that is not cut: an operator may let `thumb` and `medium` be cut too. */
function wholeUrl(media: Media, crops: readonly Crop[]): string {
  const variant = (['thumb', 'medium'] as const).find((name) => !crops.some((crop) => crop.name === name))
  return bytesUrl(media, variant)
}

/** Sets the point of a picture that cut sizes keep in their frame, and shows what they then show. */
export function FocusField({ media, focus, readOnly, theirs, onChange, onTaken }: FocusFieldProps) {
  const hint = useId()
  /** What Escape restores. */
  const before = useRef(focus)
  const target = useRef<HTMLButtonElement>(null)
  const texts = strings.details.focus
  const crops = cropsOf(media)
  const url = wholeUrl(media, crops)
  const isStill = standsStill(media)
  const describe = (point: Focus | null) =>
    point === null ? texts.none : texts.at(point.x * 100, point.y * 100)
  const label = describe(focus)
  const { width, height } = media
  const picture = width && height ? { width, height } : null
  const change = (next: Focus | null) => {
    if (!readOnly) onChange(next)
  }

  function onClick({
    currentTarget,
    clientX,
    clientY,
    detail,
  }: MouseEvent & { currentTarget: HTMLElement }): void {
    const { left, top, width, height } = currentTarget.getBoundingClientRect()
    // A key has no place.
    if (detail === 0) change(focus ?? { x: 0.5, y: 0.5 })
    else change({ x: share((clientX - left) / width), y: share((clientY - top) / height) })
  }

  function onKeyDown(event: KeyboardEvent): void {
    const direction = steps[event.key]
    const undoes = event.key === 'Escape' && focus !== before.current
    if (!direction && !undoes) return
    // Neither another file nor the end of the viewer.
    event.preventDefault()
    event.stopPropagation()
    if (!direction) {
      change(before.current)
      return
    }
    const by = event.shiftKey ? largeStep : step
    const { x, y } = focus ?? { x: 0.5, y: 0.5 }
    change({ x: share(x + direction[0] * by), y: share(y + direction[1] * by) })
  }

  return (
    <fieldset class="focus-field">
      <legend>{texts.legend}</legend>
      <p id={hint} class="small muted">
        {texts.hint}
      </p>
      <button
        ref={target}
        type="button"
        class="focus-target"
        aria-label={`${texts.legend}: ${label}`}
        aria-describedby={hint}
        aria-disabled={readOnly}
        onClick={onClick}
        onKeyDown={onKeyDown}
        onFocus={() => {
          before.current = focus
        }}
      >
        {isStill ? <StillImage src={url} alt="" /> : <img src={url} alt="" draggable={false} />}
        {focus !== null && (
          <span class="focus-mark" style={{ left: `${focus.x * 100}%`, top: `${focus.y * 100}%` }} />
        )}
      </button>
      <p class="focus-place">
        <span role="status">{label}</span>
        {focus !== null && (
          <button
            type="button"
            class="button small"
            aria-disabled={readOnly}
            onClick={() => {
              change(null)
              // This button is removed.
              target.current?.focus()
            }}
          >
            {texts.clear}
          </button>
        )}
      </p>
      {theirs !== undefined && (
        <div class="their-text">
          <p>
            <span class="muted">{strings.details.theirs}</span> {describe(theirs)}
          </p>
          <button
            type="button"
            class="button small"
            aria-label={strings.details.useTheirsOf(texts.legend)}
            aria-disabled={readOnly}
            onClick={() => {
              if (!readOnly) onTaken()
            }}
          >
            {strings.details.useTheirs}
          </button>
        </div>
      )}
      {picture !== null && focus !== null && crops.length > 0 && (
        <ul class="focus-crops" aria-label={texts.crops}>
          {crops.map((crop) => {
            const scale = cropSide / Math.max(crop.width, crop.height)
            const shown = {
              src: url,
              style: {
                width: `${crop.width * scale}px`,
                height: `${crop.height * scale}px`,
                'object-position': positionIn(crop, picture, focus),
              },
            }
            return (
              <li key={crop.name}>
                {isStill ? <StillImage {...shown} alt="" /> : <img {...shown} alt="" />}
                <span>{texts.crop(crop.name, crop.width, crop.height)}</span>
              </li>
            )
          })}
        </ul>
      )}
    </fieldset>
  )
}
