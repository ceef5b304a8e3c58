import { load } from 'exifreader'

/** What a camera has written into a picture; null for what it has not. Texts have the units of the camera. */
export interface CameraData {
  readonly camera: string | null
  readonly lens: string | null
  /** As in `1/250 s, f/2.8, ISO 100`. */
  readonly exposure: string | null
  readonly focalLength: string | null
  /** RFC 3339, in the time zone of the browser, because most cameras do not record theirs. */
  readonly takenAt: string | null
  /** Degrees. */
  readonly location: { readonly latitude: number; readonly longitude: number } | null
}

/** What a camera has written into the picture with these first bytes; null if there is nothing, or the picture is damaged. */
export function parseCameraData(bytes: ArrayBuffer): CameraData | null {
  try {
    return cameraDataOf(load(bytes, { expanded: true }))
  } catch {
    return null
  }
}

interface Tag {
  readonly description: string
}

/** The groups of tags as the library returns them, as far as they are used. */
interface Tags {
  readonly exif?: {
    readonly Make?: Tag
    readonly Model?: Tag
    readonly LensModel?: Tag
    readonly ExposureTime?: Tag
    readonly FNumber?: Tag
    readonly ISOSpeedRatings?: Tag
    readonly FocalLength?: Tag
    readonly DateTimeOriginal?: Tag
  }
  readonly gps?: { readonly Latitude?: number; readonly Longitude?: number }
}

function cameraDataOf({ exif = {}, gps = {} }: Tags): CameraData | null {
  const [make, model] = [textOf(exif.Make), textOf(exif.Model)]
  const iso = textOf(exif.ISOSpeedRatings)
  const time = textOf(exif.ExposureTime)
  const exposure = [time && `${time} s`, textOf(exif.FNumber), iso && `ISO ${iso}`].filter(Boolean).join(', ')
  const { Latitude: latitude, Longitude: longitude } = gps
  const data = {
    // Many models begin with the name of their maker.
    camera: make && model && !model.startsWith(make) ? `${make} ${model}` : (model ?? make),
    lens: textOf(exif.LensModel),
    exposure: exposure || null,
    focalLength: textOf(exif.FocalLength),
    takenAt: timeOf(textOf(exif.DateTimeOriginal)),
    location: isDegrees(latitude, 90) && isDegrees(longitude, 180) ? { latitude, longitude } : null,
  }
  return Object.values(data).every((value) => value === null) ? null : data
}

const isDegrees = (value: number | undefined, most: number): value is number =>
  value !== undefined && Math.abs(value) <= most

/** Cameras end texts with zeros or spaces. The library returns some descriptions as numbers, against its types. */
const textOf = (tag: Tag | undefined): string | null =>
  `${tag?.description ?? ''}`.replace(/\0/g, '').trim().slice(0, 200) || null

/** The time of `2026:01:02 03:04:05`. */
function timeOf(text: string | null): string | null {
  const time = new Date(text?.replace(/^(\d{4}):(\d\d):(\d\d) /, '$1-$2-$3T') ?? '')
  return Number.isNaN(time.getTime()) ? null : time.toISOString()
}
