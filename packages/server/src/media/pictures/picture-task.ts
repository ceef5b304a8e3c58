import type { LocalBytes } from '../../blobs/blobs.ts'
import type { NewPreview } from '../../catalog/records.ts'
import type { VariantFormat, VariantSize } from '../../core/variant.ts'

// The messages between the service and the picture workers.

/** The bytes of a picture, or the path of its file. */
export type PictureSource = string | Uint8Array

export const sourceOf = ({ content }: LocalBytes): PictureSource =>
  content.type === 'file' ? content.path : content.bytes

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
    }

/** Pixels, as the picture is displayed. */
export interface PictureSize {
  readonly width: number
  readonly height: number
}

export type PictureResult =
  | { readonly outcome: 'measured'; readonly size: PictureSize }
  | { readonly outcome: 'resized'; readonly bytes: Uint8Array; readonly preview: NewPreview | null }
  /** The picture cannot be decoded, or has too many pixels. */
  | { readonly outcome: 'unreadable' }
  /** The library cannot be loaded on this machine. */
  | { readonly outcome: 'unsupported'; readonly reason: string }
