import { expect, test } from 'vitest'
import { circlesAmong, importsOf, sourcesBelow } from './sources.ts'

const src = 'packages/strip-metadata/src/'
const files = sourcesBelow(src)

/** The files of each layer. A file may import those of its own layer and of the layers before it. */
const layers: readonly (readonly string[])[] = [
  ['box-lengths.ts', 'pieces.ts'],
  ['boxes.ts', 'tiff-directory.ts', 'time-text.ts', 'xmp.ts'],
  [
    'boxed-file.ts',
    'exif-times.ts',
    'jpeg.ts',
    'movie.ts',
    'movie-times.ts',
    'picture-items.ts',
    'png.ts',
    'png-frames.ts',
    'png-pixels.ts',
    'png-times.ts',
    'sample-entries.ts',
    'tiff.ts',
    'time-search.ts',
    'webp.ts',
  ],
  ['plan-removal.ts', 'taken-time.ts'],
  ['index.ts'],
]
const layerOf = (path: string) => layers.findIndex((layer) => layer.includes(path.slice(src.length)))

test('every file of the removal of metadata is in a known layer', () => {
  expect(files.filter((path) => layerOf(path) < 0)).toEqual([])
})

test('imports of the removal of metadata point one way, and it imports only modules of Node.js', () => {
  const wrong = files.flatMap((path) => {
    const { own, foreign } = importsOf(path)
    return [
      ...own.filter((target) => layerOf(target) < 0 || layerOf(target) > layerOf(path)),
      ...foreign.filter((name) => !name.startsWith('node:')),
    ].map((target) => `${path} → ${target}`)
  })
  expect(wrong).toEqual([])
})

test('no import cycle in the removal of metadata, including type imports', () => {
  expect(circlesAmong(files)).toEqual([])
})
