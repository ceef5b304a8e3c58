import { thumbHashToRGBA } from 'thumbhash'

/** Draws the placeholders of pictures that are not loaded yet (docs/interface.md, V13). */
export interface Placeholders {
  /** Draws a ThumbHash in Base64. The canvas gets the size of the placeholder, at most 32 × 32 pixels. */
  draw(canvas: HTMLCanvasElement, thumbHash: string): void
}

/** Placeholders that stay decoded. Each has at most 4 KiB, and takes about 0.2 ms to decode. */
const maxDecoded = 500

export function createPlaceholders(): Placeholders {
  const decoded = new Map<string, ImageData | null>()

  function pixelsOf(thumbHash: string): ImageData | null {
    const known = decoded.get(thumbHash)
    if (known !== undefined) return known
    for (const [oldest] of decoded) {
      if (decoded.size < maxDecoded) break
      decoded.delete(oldest)
    }
    const pixels = decode(thumbHash)
    decoded.set(thumbHash, pixels)
    return pixels
  }

  return {
    draw(canvas, thumbHash) {
      const pixels = pixelsOf(thumbHash)
      if (pixels === null) return
      canvas.width = pixels.width
      canvas.height = pixels.height
      canvas.getContext('2d')?.putImageData(pixels, 0, 0)
    },
  }
}

/** Null if the text is no ThumbHash. */
function decode(thumbHash: string): ImageData | null {
  try {
    const { w, h, rgba } = thumbHashToRGBA(Uint8Array.from(atob(thumbHash), (char) => char.charCodeAt(0)))
    return new ImageData(new Uint8ClampedArray(rgba), w, h)
  } catch {
    return null
  }
}
