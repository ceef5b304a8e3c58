// What the service asks of the processes that look into pictures, and what they answer.

/** A picture is its bytes, or the path of its file; `maxPixels` bounds what is decoded. */
export type PictureTask =
  | { readonly what: 'measure'; readonly picture: string | Uint8Array }
  | { readonly what: 'shrink'; readonly path: string; readonly side: number; readonly maxPixels: number }

/** Pixels, as the picture is displayed. */
export interface PictureSize {
  readonly width: number
  readonly height: number
}

export type PictureResult =
  | { readonly outcome: 'measured'; readonly size: PictureSize }
  | { readonly outcome: 'shrunk'; readonly bytes: Uint8Array }
  /** The bytes are no picture that can be read, or it has too many pixels. */
  | { readonly outcome: 'unreadable' }
  /** The library cannot be loaded on this machine. */
  | { readonly outcome: 'unsupported'; readonly reason: string }
