import type { Media } from '@mediabucket/client'
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { formatClock, formatSize, formatTime } from '../format.ts'
import { useGallery } from '../gallery-context.ts'
import { NamesChoice } from '../selection/names-choice.tsx'
import { mayHaveCameraData, readCameraData } from '../service/camera-data.ts'
import type { CameraData } from '../service/parse-camera-data.ts'
import { addressOf, isPrivate } from '../service/urls.ts'
import { locale } from '../strings/locale.ts'
import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'

/** The properties of an item. */
export function Details({ media }: { media: Media }) {
  const { canEdit, shownList, preferences } = useGallery()
  const [editing, setEditing] = useState<string | null>(null)
  const { width, height, sha256 } = media
  const labels = Object.entries(media.labels ?? {}).map(([key, value]) => `${key}=${value}`)
  if (editing === media.id)
    return (
      <aside class="details" aria-label={strings.details.title}>
        <h2>{strings.details.title}</h2>
        {/* An earlier form may be saved after that of another item was opened. */}
        <Editing media={media} onDone={() => setEditing((now) => (now === media.id ? null : now))} />
      </aside>
    )
  return (
    <aside class="details" aria-label={strings.details.title}>
      <div class="details-head">
        <h2>{strings.details.title}</h2>
        {canEdit && (
          <button type="button" class="button small" onClick={() => setEditing(media.id)}>
            {strings.details.edit}
          </button>
        )}
      </div>
      <dl>
        <Entry term={strings.details.name}>{media.filename ?? strings.unnamed}</Entry>
        {media.path && <Entry term={strings.details.path}>{media.path}</Entry>}
        {media.alt_text && <Entry term={strings.details.altText}>{media.alt_text}</Entry>}
        {media.caption && <Entry term={strings.details.caption}>{media.caption}</Entry>}
        {labels.length > 0 && (
          <Entry term={strings.details.labels}>
            <ul class="details-labels">
              {labels.map((label) => (
                <li key={label}>
                  <a href={shownList.hashOfLabel(label)}>{label}</a>
                </li>
              ))}
            </ul>
          </Entry>
        )}
        <Entry term={strings.details.type}>{media.content_type}</Entry>
        <Entry term={strings.details.size}>
          {strings.details.sizeExact(formatSize(media.size), media.size)}
        </Entry>
        {width !== null && height !== null && (
          <Entry term={strings.details.dimensions}>{strings.details.pixels(width, height)}</Entry>
        )}
        {media.taken_at && (
          <Entry term={strings.details.camera.taken}>
            <time dateTime={media.taken_at}>{formatClock(media.taken_at)}</time>
          </Entry>
        )}
        <Entry term={strings.details.added}>
          <time dateTime={media.created_at}>{formatTime(media.created_at)}</time>
        </Entry>
        {typeof media.expires_at === 'string' && (
          <Entry term={strings.details.expires}>
            <time dateTime={media.expires_at}>{formatTime(media.expires_at)}</time>
          </Entry>
        )}
        {/* Never what the camera wrote into the file that was shown before. */}
        <CameraEntries key={media.id} media={media} />
        <Entry term={strings.details.hash}>
          <code>{sha256}</code>
        </Entry>
        <Entry term={strings.details.link}>
          <input
            class="details-link"
            type="text"
            readOnly
            value={addressOf(media, preferences.names.value)}
            aria-label={strings.details.link}
            onFocus={(event) => event.currentTarget.select()}
          />
          <NamesChoice />
          {isPrivate(media) && <p class="small muted">{strings.link.needsToken}</p>}
        </Entry>
      </dl>
    </aside>
  )
}

/** The form that changes the texts of an item, when its code is loaded. */
function Editing(props: { media: Media; onDone: () => void }) {
  const form = useCode(() => import('./edit-details.tsx'), 'labels')
  if (form === 'loading') return <p role="status">{strings.viewer.loading}</p>
  if (form !== 'failed') return <form.EditDetails {...props} />
  return (
    <>
      <p role="alert">{strings.notLoaded}</p>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={props.onDone}>
          {strings.cancel}
        </button>
      </div>
    </>
  )
}

/** What the camera has written into a picture, as entries of the list of properties. Nothing while it is unknown. */
function CameraEntries({ media }: { media: Media }) {
  const { files } = useGallery()
  const [data, setData] = useState<CameraData | null>(null)
  useEffect(() => {
    if (!mayHaveCameraData(media.content_type)) return
    const aborter = new AbortController()
    // Without it the other properties are shown.
    readCameraData(files, media, aborter.signal).then(setData, () => undefined)
    return () => aborter.abort()
  }, [])
  if (data === null) return null
  const { camera, lens, exposure, focalLength, takenAt, location } = data
  return (
    <>
      {takenAt !== null && !media.taken_at && (
        <Entry term={strings.details.camera.taken}>
          <time dateTime={takenAt}>{formatTime(takenAt)}</time>
        </Entry>
      )}
      {camera !== null && <Entry term={strings.details.camera.camera}>{camera}</Entry>}
      {lens !== null && <Entry term={strings.details.camera.lens}>{lens}</Entry>}
      {exposure !== null && <Entry term={strings.details.camera.exposure}>{exposure}</Entry>}
      {focalLength !== null && <Entry term={strings.details.camera.focalLength}>{focalLength}</Entry>}
      {location !== null && (
        <Entry term={strings.details.camera.location}>
          {formatDegrees(location.latitude)}, {formatDegrees(location.longitude)}
          <p class="details-warning">{strings.details.camera.locationHint}</p>
        </Entry>
      )}
    </>
  )
}

const formatDegrees = (degrees: number): string =>
  `${degrees.toLocaleString(locale.current, { minimumFractionDigits: 4, maximumFractionDigits: 4 })}°`

/** A property of a file, in a list of properties. */
function Entry({ term, children }: { term: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  )
}
