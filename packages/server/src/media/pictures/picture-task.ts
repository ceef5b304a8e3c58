import type { LocalBytes } from '../../blobs/blobs.ts'
import type { NewPreview } from '../../catalog/records.ts'
import type { VariantFormat, VariantSize } from '../../core/variant.ts'
import type { Piece } from './metadata/pieces.ts'

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
  | RemovalTask
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

/** Finds the metadata of a file of `size` bytes. Without `bytes`, the worker requests those that it needs. */
export interface RemovalTask {
  readonly type: 'plan-removal'
  readonly contentType: string
  readonly size: number
  readonly bytes: Uint8Array | null
}

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

export const maxRead = 1024 * 1024

/** Pixels, as the picture is displayed. */
export interface PictureSize {
  readonly width: number
  readonly height: number
}

export type ResizeTask = PictureTask & { readonly type: 'resize' }

export type PictureResult =
  | { readonly outcome: 'measured'; readonly size: PictureSize }
  | { readonly outcome: 'resized'; readonly bytes: Uint8Array; readonly preview: NewPreview | null }
  /** The file without its metadata. */
  | { readonly outcome: 'planned'; readonly pieces: readonly Piece[] }
  /** The picture cannot be decoded, or has too many pixels; or the file is not what its type says. */
  | { readonly outcome: 'unreadable' }
  /** The library cannot be loaded on this machine. */
  | { readonly outcome: 'unsupported'; readonly reason: string }
