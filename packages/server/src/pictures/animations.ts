import { readFile } from 'node:fs/promises'
import { createMemorySource } from '@mediabucket/strip-metadata'
import type { OutputInfo, Sharp } from 'sharp'
import { transparentFrame } from './first-frames.ts'
import type { PictureSource } from './picture-task.ts'
import { type Chunk, chunksOf, pictureOfFrame, pngSignature } from './png-chunks.ts'

type Open = typeof import('sharp')['default']

/** The frames of an animation, each as it is shown. */
export interface Animation {
  /** Pixels of the canvas. */
  readonly width: number
  readonly height: number
  /** For each frame, its pixels in red, green, blue and opacity, and the milliseconds for which it is shown. */
  readonly frames: readonly { readonly pixels: Uint8Array; readonly delay: number }[]
  /** The number of repetitions of the animation; 0 means without end. */
  readonly loop: number
}

/** An animation with more is shown as its first frame (docs/interface.md V20). Milliseconds, and pixels of all frames. */
export interface AnimationLimits {
  readonly frames: number
  readonly duration: number
  readonly pixels: number
}

export const animationLimits: AnimationLimits = { frames: 500, duration: 60_000, pixels: 40e6 }

/**
 * Reads the frames of an animated GIF, WebP or PNG file; null for other pictures and above the limits. It checks the time left before each decoding,
 * and rejects if one takes longer. `secondsLeft` returns a whole number, below 1 at the end.
 */
export async function readAnimation(
  sharp: Open,
  picture: PictureSource,
  limits: AnimationLimits,
  secondsLeft: () => number,
): Promise<Animation | null> {
  const bytes = typeof picture === 'string' ? await readFile(picture) : Buffer.from(picture)
  if (bytes.subarray(0, pngSignature.byteLength).equals(pngSignature))
    return readAnimatedPng(sharp, bytes, limits, secondsLeft)
  return readPages(sharp, bytes, limits, secondsLeft)
}

const fits = ({ width, height, delays }: Sheet, limits: AnimationLimits): boolean =>
  delays.length > 1 &&
  delays.length <= limits.frames &&
  width * height * delays.length <= limits.pixels &&
  delays.reduce((sum, delay) => sum + delay, 0) <= limits.duration

interface Sheet {
  readonly width: number
  readonly height: number
  readonly delays: readonly number[]
}

/** Reads a file whose frames the library composes. */
async function readPages(
  sharp: Open,
  file: Buffer,
  limits: AnimationLimits,
  secondsLeft: () => number,
): Promise<Animation | null> {
  const {
    format,
    width,
    pageHeight = 0,
    delay = [],
    loop = 0,
  } = await sharp(file, {
    animated: true,
    limitInputPixels: false,
  }).metadata()
  if ((format !== 'gif' && format !== 'webp') || !fits({ width, height: pageHeight, delays: delay }, limits))
    return null
  const seconds = secondsLeft()
  if (seconds < 1) return null
  const decoded = await sharp(format === 'gif' ? onTransparentCanvas(file) : file, {
    pages: delay.length,
    limitInputPixels: false,
    failOn: 'error',
  })
    .timeout({ seconds })
    .toColourspace('srgb')
    .ensureAlpha()
    .raw({ depth: 'uchar' })
    .toBuffer()
  const length = width * pageHeight * 4
  const frames = delay.map((delay, index) => ({
    pixels: decoded.subarray(index * length, (index + 1) * length),
    delay,
  }))
  return { width, height: pageHeight, frames, loop }
}

const trailer = 0x3b

/** With a transparent frame at the end, the decoder keeps what is transparent in all of them, where it would show black. */
function onTransparentCanvas(file: Buffer): Buffer {
  const end = file.lastIndexOf(trailer)
  return end < 0 ? file : Buffer.concat([file.subarray(0, end), transparentFrame, Buffer.of(trailer)])
}

/** A frame of an animated PNG. */
interface PngFrame {
  readonly control: Buffer
  readonly pixels: Chunk[]
}

/** The ways in which the canvas is prepared for the next frame (PNG 3, 11.3.6.2). */
const [disposesToBackground, disposesToPrevious] = [1, 2]

async function readAnimatedPng(
  sharp: Open,
  file: Buffer,
  limits: AnimationLimits,
  secondsLeft: () => number,
): Promise<Animation | null> {
  const source = createMemorySource(file)
  const shared: Chunk[] = []
  const found: PngFrame[] = []
  let header: Buffer | null = null
  let loop: number | null = null
  let hasPixels = false
  for await (const chunk of chunksOf(source)) {
    const { type, start, end } = chunk
    const data = file.subarray(start, end)
    if (type === 'IHDR') header = data
    if (type === 'acTL') loop = data.readUInt32BE(4)
    else if (type === 'fcTL') found.push({ control: data, pixels: [] })
    else if (type === 'IDAT' || type === 'fdAT') {
      hasPixels = true
      // The default picture is a frame if a control precedes it.
      found.at(-1)?.pixels.push(chunk)
    } else if (!hasPixels && isShared(type)) shared.push(chunk)
    if (found.length > limits.frames) return null
  }
  if (header === null || loop === null) return null
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const shown = found.filter(({ pixels }) => pixels.length > 0)
  const delays = shown.map(({ control }) => delayOf(control))
  if (!fits({ width, height, delays }, limits)) return null
  const canvas = new Canvas(width, height)
  const frames: { readonly pixels: Uint8Array; readonly delay: number }[] = []
  for (const [index, { control, pixels }] of shown.entries()) {
    const seconds = secondsLeft()
    if (seconds < 1) return null
    const frame = await pictureOfFrame(source, { control, shared, pixels })
    if (frame === null) return null
    const decoded = await sharp(frame.picture, { limitInputPixels: limits.pixels, failOn: 'error' })
      .timeout({ seconds })
      .toColourspace('srgb')
      .ensureAlpha()
      .raw({ depth: 'uchar' })
      .toBuffer()
    const drawn = canvas.draw(control, decoded, index === 0)
    frames.push({ pixels: drawn, delay: delays[index] ?? 0 })
  }
  return { width, height, frames, loop }
}

/** Whether a chunk before the pixels decides how they look. Texts and unknown chunks would be copied for each frame. */
const isShared = (type: string): boolean => /^(?:IHDR|PLTE|tRNS|cICP|iCCP|sRGB|gAMA|cHRM|sBIT)$/.test(type)

/** Milliseconds. A denominator of 0 stands for 100 (PNG 3, 11.3.6.2). */
function delayOf(control: Buffer): number {
  const [numerator, denominator] = [control.readUInt16BE(20), control.readUInt16BE(22)]
  return Math.round((numerator * 1000) / (denominator || 100))
}

/** The canvas on which the frames of an animated PNG are drawn one after another. */
class Canvas {
  readonly #width: number
  #pixels: Uint8Array

  constructor(width: number, height: number) {
    this.#width = width
    this.#pixels = new Uint8Array(width * height * 4)
  }

  /** Draws a frame, and returns a copy of the canvas as it is shown. */
  draw(control: Buffer, frame: Uint8Array, isFirst: boolean): Uint8Array {
    const [width, height, left, top] = [4, 8, 12, 16].map((at) => control.readUInt32BE(at))
    const area = { width: width ?? 0, height: height ?? 0, left: left ?? 0, top: top ?? 0 }
    const [disposal, blendsOver] = [control.readUInt8(24), control.readUInt8(25) === 1]
    const previous = disposal === disposesToPrevious && !isFirst ? this.#pixels.slice() : null
    this.#eachRow(area, (at, row) => {
      const pixels = frame.subarray(row * area.width * 4, (row + 1) * area.width * 4)
      if (blendsOver) blend(this.#pixels.subarray(at, at + pixels.length), pixels)
      else this.#pixels.set(pixels, at)
    })
    const shown = this.#pixels.slice()
    if (previous !== null) this.#pixels = previous
    else if (disposal === disposesToBackground || disposal === disposesToPrevious)
      this.#eachRow(area, (at) => this.#pixels.fill(0, at, at + area.width * 4))
    return shown
  }

  #eachRow(
    { left, top, height }: { readonly left: number; readonly top: number; readonly height: number },
    work: (at: number, row: number) => void,
  ): void {
    for (let row = 0; row < height; row += 1) work(((top + row) * this.#width + left) * 4, row)
  }
}

/** Draws pixels over others (PNG 3, 13.16). */
function blend(below: Uint8Array, above: Uint8Array): void {
  for (let at = 0; at < above.length; at += 4) {
    const [over, under] = [above[at + 3] ?? 0, below[at + 3] ?? 0]
    if (over === 0) continue
    const opacity = over + (under * (255 - over)) / 255
    for (let channel = 0; channel < 3; channel += 1) {
      const mixed =
        (above[at + channel] ?? 0) * over + ((below[at + channel] ?? 0) * under * (255 - over)) / 255
      below[at + channel] = Math.round(mixed / opacity)
    }
    below[at + 3] = Math.round(opacity)
  }
}

/** Resizes each frame, and joins them one below another. `toFrame` describes the picture of one frame, by that of the first one. */
export async function resizeFrames(
  sharp: Open,
  { width, height, frames }: Animation,
  toFrame: (frame: Sharp, first: OutputInfo | null) => Sharp,
  isOver: () => boolean,
): Promise<Sharp | null> {
  let first: OutputInfo | null = null
  let sheet: Uint8Array | null = null
  for (const [index, { pixels }] of frames.entries()) {
    if (isOver()) return null
    const picture = sharp(pixels, { raw: { width, height, channels: 4 } })
    const shown: Sharp = toFrame(picture, first)
    const { data, info } = await shown.raw().toBuffer({ resolveWithObject: true })
    sheet ??= new Uint8Array(data.byteLength * frames.length)
    sheet.set(data, index * data.byteLength)
    first ??= info
  }
  if (sheet === null || first === null) return null
  const pageHeight = first.height
  const raw = { width: first.width, height: pageHeight * frames.length, channels: 4 as const, pageHeight }
  return sharp(sheet, { raw, limitInputPixels: false })
}
