import type { Media } from '@mediabucket/client'
import { useEffect, useState } from 'preact/hooks'
import { formatTime } from '../format/date.ts'
import { locale } from '../format/locale.ts'
import { mayHaveCameraData, readCameraData } from '../service/camera-data.ts'
import type { CameraData } from '../service/parse-camera-data.ts'
import { strings } from '../strings.ts'
import { Entry } from './entry.tsx'

/** What the camera has written into a picture, as entries of the list of properties. Nothing while it is unknown. */
export function CameraEntries({ media }: { media: Media }) {
  const [data, setData] = useState<CameraData | null>(null)
  useEffect(() => {
    setData(null)
    if (!mayHaveCameraData(media.content_type)) return
    const aborter = new AbortController()
    // Without it the other properties are shown.
    readCameraData(media, aborter.signal).then(setData, () => undefined)
    return () => aborter.abort()
  }, [media.id])
  if (data === null) return null
  const { camera, lens, exposure, focalLength, takenAt, location } = data
  return (
    <>
      {takenAt !== null && (
        <Entry term={strings.camera.taken}>
          <time dateTime={takenAt}>{formatTime(takenAt)}</time>
        </Entry>
      )}
      {camera !== null && <Entry term={strings.camera.camera}>{camera}</Entry>}
      {lens !== null && <Entry term={strings.camera.lens}>{lens}</Entry>}
      {exposure !== null && <Entry term={strings.camera.exposure}>{exposure}</Entry>}
      {focalLength !== null && <Entry term={strings.camera.focalLength}>{focalLength}</Entry>}
      {location !== null && (
        <Entry term={strings.camera.location}>
          {formatDegrees(location.latitude)}, {formatDegrees(location.longitude)}
          <p class="details-warning">{strings.camera.locationHint}</p>
        </Entry>
      )}
    </>
  )
}

const formatDegrees = (degrees: number): string =>
  `${degrees.toLocaleString(locale.current, { minimumFractionDigits: 4, maximumFractionDigits: 4 })}°`
