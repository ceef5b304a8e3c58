import type { RemovalPlan, TakenReading } from '@mediabucket/strip-metadata'
import type { Variant } from '../core/variants.ts'
import type { LocalBytes } from '../storage/blobs/blobs.ts'
import type { NewPreview } from '../storage/catalog/records.ts'

// The messages between the service and the picture workers.

/** The bytes of a picture, or the path of its file. */
export type PictureSource = string | Uint8Array

export const sourceOf = ({ content }: LocalBytes): PictureSource =>
  content.type === 'file' ? content.path : content.bytes

/** A program, by its path, and what it needs. */
export type Extraction =
  | {
      readonly tool: 'ffmpeg'
      readonly program: string
      /** The path of ffprobe. */
      readonly probe: string
      readonly demuxer: string
    }
  | { readonly tool: 'pdftoppm'; readonly program: string }
  /** `output.jpg` and `output.png` are links to the descriptor 3, since the program derives the format from the name. */
  | { readonly tool: 'heif-convert'; readonly program: string; readonly output: string }

/** What is recorded of a picture; null where it is unknown. */
export interface RecordedPreview extends Nullable<PictureSize> {
  readonly thumbhash: Uint8Array | null
}

type Nullable<T> = { readonly [K in keyof T]: T[K] | null }

/** What a picture is rendered to. */
export type PictureForm = Pick<Variant, 'width' | 'height' | 'fit' | 'format' | 'quality' | 'isAnimated'> &
  Partial<Pick<Variant, 'crop'>>

/** Pictures with more than `maxPixels` are not decoded. */
export type PictureTask =
  | { readonly type: 'measure'; readonly picture: PictureSource }
  | RemovalTask
  | ComparisonTask
  | {
      readonly type: 'resize'
      readonly picture: PictureSource
      readonly form: PictureForm
      readonly maxPixels: number
      /** Milliseconds for the movement of an animated picture; after them it is rendered as its first frame. */
      readonly animationTime?: number
      /** What is recorded of the picture: the result has a preview if that is unknown or of another picture. Without a preview if null. */
      readonly recorded: RecordedPreview | null
      /** How a program gets the picture from the file `picture`; null if the file is the picture. */
      readonly extraction: Extraction | null
    }

/** Finds the metadata of a file of `size` bytes. Without `bytes`, the worker requests those that it needs. */
export interface RemovalTask {
  readonly type: 'plan-removal'
  readonly contentType: string
  readonly size: number
  readonly bytes: Uint8Array | null
  /** The present time, if the result is to have the time at which the picture was taken; otherwise null. Milliseconds since 1970. */
  readonly now: number | null
}

/** Compares a file with its copy without metadata. */
export interface ComparisonTask {
  readonly type: 'compare'
  readonly before: PictureSource
  readonly after: PictureSource
  /** The installed programs that read the files, by their paths; null if no program is needed. `output` is a link to the descriptor 3. */
  readonly programs: {
    readonly ffmpeg: string | null
    readonly heif: { readonly program: string; readonly output: string } | null
  } | null
}

/**
 * `undecodable`: no decoder reads the file as it was sent. `unchecked`: the decoder that could read it is not installed.
 * `too-large`: it has too many pixels.
 */
export type Verdict = 'same' | 'different' | 'undecodable' | 'unchecked' | 'too-large'

/** The bytes of a file, which a worker has requested. */
export interface ReadReply {
  readonly type: 'bytes'
  readonly bytes: Uint8Array
}

/** A worker's request for bytes of the file of its task. At most `maxRead` bytes. */
export interface ReadRequest {
  readonly outcome: 'read'
  readonly position: number
  readonly length: number
}

/** A worker has loaded its decoder. */
export interface Ready {
  readonly outcome: 'ready'
}

export const maxRead = 1024 * 1024

/** Pixels, as the picture is displayed. */
export interface PictureSize {
  readonly width: number
  readonly height: number
}

export type ResizeTask = PictureTask & { readonly type: 'resize' }

/** The value that a byte of a file gets. */
export interface HidingByte {
  readonly position: number
  readonly value: number
}

export type PictureResult =
  | { readonly outcome: 'measured'; readonly size: PictureSize }
  | { readonly outcome: 'resized'; readonly bytes: Uint8Array; readonly preview: NewPreview | null }
  /** The file without its metadata. */
  | ({ readonly outcome: 'planned'; readonly reading: TakenReading | null } & RemovalPlan)
  | { readonly outcome: 'compared'; readonly verdict: Verdict }
  /** The file has several pictures; with these bytes, only the primary one. */
  | { readonly outcome: 'several'; readonly hiding: readonly HidingByte[] }
  /** The picture cannot be decoded, or has too many pixels; or the file is not what its type says. */
  | { readonly outcome: 'unreadable' }
  /** The picture has a form that no decoder of the service knows. */
  | { readonly outcome: 'unknown-form' }
  /** The library cannot be loaded on this machine. */
  | { readonly outcome: 'unsupported'; readonly reason: string }
