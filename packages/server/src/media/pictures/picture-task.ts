// The messages between the service and the picture workers.

/** A picture is its bytes or the path of its file. Pictures with more than `maxPixels` are not decoded. */
export type PictureTask =
  | { readonly type: 'measure'; readonly picture: string | Uint8Array }
  | {
      readonly type: 'resize'
      readonly picture: string | Uint8Array
      readonly side: number
      readonly maxPixels: number
    }

/** Pixels, as the picture is displayed. */
export interface PictureSize {
  readonly width: number
  readonly height: number
}

export type PictureResult =
  | { readonly outcome: 'measured'; readonly size: PictureSize }
  | { readonly outcome: 'resized'; readonly bytes: Uint8Array }
  /** The picture cannot be decoded, or has too many pixels. */
  | { readonly outcome: 'unreadable' }
  /** The library cannot be loaded on this machine. */
  | { readonly outcome: 'unsupported'; readonly reason: string }
