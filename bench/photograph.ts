import sharp from 'sharp'

/** A JPEG of the size of a photograph: noise, enlarged four times, over a random colour. */
export async function photograph(width: number): Promise<Buffer<ArrayBuffer>> {
  const noise = await sharp({
    create: {
      width: width / 4,
      height: (width * 3) / 16,
      channels: 3,
      background: 'grey',
      noise: { type: 'gaussian', mean: 128, sigma: 40 },
    },
  })
    .raw()
    .toBuffer({ resolveWithObject: true })
  const { width: w, height: h, channels } = noise.info
  const jpeg = await sharp(noise.data, { raw: { width: w, height: h, channels } })
    .resize({ width, kernel: 'cubic' })
    .jpeg({ quality: 90 })
    .toBuffer()
  return Buffer.from(jpeg)
}
