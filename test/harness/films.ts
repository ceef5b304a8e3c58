import { execFile } from 'node:child_process'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pdfOf } from './pdf.ts'
import { needTools } from './tools.ts'

const run = promisify(execFile)

async function withFile(
  name: string,
  tool: string,
  work: (path: string) => Promise<unknown>,
): Promise<Buffer> {
  needTools(tool)
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-film-'))
  const path = join(directory.path, name)
  await work(path)
  return await readFile(path)
}

/** A video of five seconds in the format of the extension: black for 0.4 seconds, then red. */
export const film = (
  extension: string,
  size = '320x180',
  options: readonly string[] = [],
  filter = 'null',
): Promise<Buffer> =>
  withFile(`film.${extension}`, 'ffmpeg', (path) =>
    run('ffmpeg', [
      ...['-v', 'error', '-f', 'lavfi', '-i', `color=black:s=${size}:r=10:d=0.4`],
      ...['-f', 'lavfi', '-i', `color=red:s=${size}:r=10:d=4.6`],
      ...['-filter_complex', `[0][1]concat,${filter}`, '-g', '4', ...options, path],
    ]),
  )

/** A video of 4080 × 4080 pixels whose frame that is shown follows this many frames without a key frame. */
export async function longFilm(frames: number): Promise<Buffer<ArrayBuffer>> {
  const short = await film('flv', '4080x4080', ['-frames:v', '2', '-c:v', 'flv1'])
  const tags: Buffer[] = []
  for (let at = 13; at < short.length; ) {
    const end = at + short.readUIntBE(at + 1, 3) + 15
    tags.push(short.subarray(at, end))
    at = end
  }
  const [, key = Buffer.alloc(0), next = Buffer.alloc(0)] = tags
  const nextAt = (milliseconds: number) => {
    const tag = Buffer.from(next)
    tag.writeUIntBE(milliseconds, 4, 3)
    return tag
  }
  const times = Array.from({ length: frames }, (_, index) => Math.floor((index * 5_000) / frames))
  return Buffer.concat([short.subarray(0, 13), key, ...[...times, 5_001, 60_000].map(nextAt)])
}

/** A HEIC file of pictures of these PNG bytes. */
export const heicOf = (...pngs: readonly Buffer[]): Promise<Buffer> =>
  withFile('picture.heic', 'heif-enc', async (path) => {
    const paths = pngs.map((_, index) => `${path}-${index}.png`)
    for (const [index, png] of pngs.entries()) await writeFile(paths[index] ?? '', png)
    await run('heif-enc', ['-q', '90', ...paths, '-o', path])
  })

/** A PDF with one page of this size in points: red on the left, white on the right. `catalog` is added to its root. */
export function pdf(width = 200, height = 100, catalog = ''): Buffer<ArrayBuffer> {
  const drawing = `1 0 0 rg 0 0 ${width / 2} ${height} re f`
  return pdfOf([
    `<< /Type /Catalog /Pages 2 0 R ${catalog} >>`,
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${width} ${height}] /Contents 4 0 R >>`,
    `<< /Length ${drawing.length} >>\nstream\n${drawing}\nendstream`,
  ])
}
