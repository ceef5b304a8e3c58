import type { LocalBytes } from '../../blobs/blobs.ts'
import type { NewPreview } from '../../catalog/records.ts'
import type { VariantFormat, VariantSize } from '../../core/variant.ts'

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
  /** `output` is a link to the descriptor 3, since the program derives the format from the name. */
  | { readonly tool: 'heif-convert'; readonly program: string; readonly output: string }

/** What a picture is rendered to. */
type PictureForm = Pick<VariantSize, 'width' | 'height' | 'fit'> & { readonly format: VariantFormat }

/** Pictures with more than `maxPixels` are not decoded. */
export type PictureTask =
  | { readonly type: 'measure'; readonly picture: PictureSource }
  | {
      readonly type: 'resize'
      readonly picture: PictureSource
      readonly form: PictureForm
      readonly maxPixels: number
      /** Whether the result has a preview. */
      readonly hasPreview: boolean
      /** How a program gets the picture from the file `picture`; null if the file is the picture. */
      readonly extraction: Extraction | null
    }

/** Pixels, as the picture is displayed. */
export interface PictureSize {
  readonly width: number
  readonly height: number
}

export type ResizeTask = PictureTask & { readonly type: 'resize' }

export type PictureResult =
  | { readonly outcome: 'measured'; readonly size: PictureSize }
  | { readonly outcome: 'resized'; readonly bytes: Uint8Array; readonly preview: NewPreview | null }
  /** The picture cannot be decoded, or has too many pixels. */
  | { readonly outcome: 'unreadable' }
  /** The library cannot be loaded on this machine. */
  | { readonly outcome: 'unsupported'; readonly reason: string }
