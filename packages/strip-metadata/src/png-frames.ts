import { UnreadableFile } from './pieces.ts'
import type { PixelForm } from './png-pixels.ts'

/** Frames of a file, each with a stream of its own. */
const maxFrames = 10_000

/** The frames of an animated PNG file. Throws UnreadableFile for those that decoders ignore, and for an order that they refuse. */
export class PngFrames {
  readonly #picture: PixelForm
  /** Frames that are not yet controlled. */
  #left: number
  #sequence = 0
  #state: 'none' | 'controlled' | 'with pixels' = 'none'
  #hasPicture = false

  /** `header` is the data of `acTL`. */
  constructor(header: Buffer, picture: PixelForm) {
    this.#picture = picture
    this.#left = header.readUInt32BE(0)
    if (this.#left > maxFrames) throw damaged('too many frames')
  }

  /** `data` is that of `fcTL`. Returns the form of the frame; null if the picture is the frame. */
  control(data: Buffer): PixelForm | null {
    this.#requireNext(data)
    const [width, height, x, y] = [4, 8, 12, 16].map((at) => data.readUInt32BE(at))
    if (!width || !height || x === undefined || y === undefined) throw damaged('a frame without pixels')
    if (x + width > this.#picture.width || y + height > this.#picture.height)
      throw damaged('a frame beyond the picture')
    if (this.#state === 'controlled' || this.#left === 0) throw damaged('a frame that is not shown')
    this.#left -= 1
    this.#state = 'controlled'
    if (this.#hasPicture) return { ...this.#picture, width, height }
    if (width < this.#picture.width || height < this.#picture.height)
      throw damaged('a frame of another size than its picture')
    return null
  }

  /** The next chunk is `IDAT`. */
  addPicture(): void {
    if (this.#hasPicture && this.#state !== 'none') throw damaged('pixels of the picture behind a frame')
    this.#hasPicture = true
    if (this.#state === 'controlled') this.#state = 'none'
  }

  /** The next chunk is `fdAT`, whose data begins with `data`. */
  addPixels(data: Buffer): void {
    this.#requireNext(data)
    if (!this.#hasPicture || this.#state === 'none') throw damaged('pixels of no frame')
    this.#state = 'with pixels'
  }

  end(): void {
    if (this.#state === 'controlled') throw damaged('a frame without pixels')
  }

  #requireNext(data: Buffer): void {
    if (data.readUInt32BE(0) !== this.#sequence) throw damaged('a wrong sequence number')
    this.#sequence += 1
  }
}

const damaged = (what: string) => new UnreadableFile(`not a PNG file: ${what}`)
