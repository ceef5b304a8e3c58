import { execFile } from 'node:child_process'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { createByteSource, lengthOf, type Piece, planRemoval } from '@mediabucket/strip-metadata'
import { needTools } from '../../../test/harness/tools.ts'

const run = promisify(execFile)

/** The programs of most tests of metadata. */
export const needPrograms = (): void => needTools('exiftool', 'ffmpeg', 'heif-enc')

/** Part of every text of the samples that must be removed. */
export const secret = 'Secret'

/** What exiftool writes into a file: all kinds of metadata that it can write to the format, and the orientation 6. */
const allTags = [
  ...['-GPSLatitude=48.1234', '-GPSLatitudeRef=N', '-GPSLongitude=11.5678', '-GPSLongitudeRef=E'],
  ...['-Make=SecretMake', '-Model=SecretModel', '-SerialNumber=SecretSerial', '-LensModel=SecretLens'],
  ...[
    '-Artist=SecretArtist',
    '-Copyright=SecretCopyright',
    '-Software=SecretSoftware',
    '-Comment=SecretComment',
  ],
  ...['-XMP:Creator=SecretCreator', '-XMP-exif:GPSLatitude=48.1234', '-IPTC:City=SecretCity'],
  ...[
    '-ImageDescription=SecretDescription',
    '-UserComment=SecretUser',
    '-DateTimeOriginal=2026:01:02 03:04:05',
  ],
  ...['-GPSCoordinates=48.1234, 11.5678, 500', '-Keys:Make=SecretMake', '-UserData:Title=SecretTitle'],
  ...['-ItemList:Artist=SecretArtist', '-Orientation#=6', '-charset', 'UTF8'],
]

/** Writes bytes to a file of this name, runs the program on it, and returns what the file has then. */
export async function changedBy(
  name: string,
  bytes: Uint8Array,
  program: string,
  args: (path: string) => readonly string[],
): Promise<Buffer> {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-metadata-'))
  const path = join(directory.path, name)
  await writeFile(path, bytes)
  await run(program, [...args(path)])
  return await readFile(path)
}

/** Writes all kinds of metadata into files, by their names. BigTIFF files stay as they are. */
export async function tagged(files: ReadonlyMap<string, Uint8Array>): Promise<Map<string, Buffer>> {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-metadata-'))
  const pathOf = (name: string) => join(directory.path, name)
  for (const [name, bytes] of files) await writeFile(pathOf(name), bytes)
  const names = [...files.keys()]
  // It fails if it cannot write one of them, after it has written the others.
  const paths = names.filter((name) => !name.startsWith('big')).map(pathOf)
  await run('exiftool', ['-q', '-q', '-m', '-overwrite_original', ...allTags, ...paths])
  return new Map(await Promise.all(names.map(async (name) => [name, await readFile(pathOf(name))] as const)))
}

/** The names of all tags that exiftool finds in each file, also in trailers, in unknown parts and in the samples of videos. */
export async function tagsOf(files: ReadonlyMap<string, Uint8Array>): Promise<Map<string, string[]>> {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-metadata-'))
  for (const [name, bytes] of files) await writeFile(join(directory.path, name), bytes)
  const { stdout } = await run('exiftool', ['-json', '-G1', '-a', '-u', '-U', '-ee3', directory.path])
  const found: Record<string, unknown>[] = JSON.parse(stdout)
  const other = /^(SourceFile$|System:|File:|ExifTool:|Composite:)/
  return new Map(
    found.map((tags) => [
      basename(`${tags['SourceFile']}`),
      Object.keys(tags).filter((tag) => !other.test(tag)),
    ]),
  )
}

/** The hashes of all packets of pictures and sounds, with their times; with `decoded`, those of frames and samples. */
export async function packetsOf(name: string, bytes: Uint8Array, decoded = false): Promise<string> {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-metadata-'))
  const path = join(directory.path, name)
  await writeFile(path, bytes)
  const copy = decoded ? [] : ['-c', 'copy']
  const { stdout } = await run('ffmpeg', [
    ...['-v', 'error', '-i', path, '-map', '0:v?', '-map', '0:a?', ...copy, '-f', 'framehash', '-'],
  ])
  return stdout
}

/** The file that the pieces of a plan form. */
export async function withoutMetadata(bytes: Uint8Array, contentType: string): Promise<Buffer> {
  const source = createByteSource(
    bytes.byteLength,
    async (position, length) => bytes.subarray(position, position + length),
    1_000,
  )
  return assembled((await planRemoval(source, contentType)).pieces, bytes)
}

const assembled = (pieces: readonly Piece[], from: Uint8Array): Buffer =>
  Buffer.concat(
    pieces.map((piece) => {
      if ('bytes' in piece) return piece.bytes
      return 'from' in piece ? from.subarray(piece.from, piece.to) : Buffer.alloc(lengthOf(piece))
    }),
  )
