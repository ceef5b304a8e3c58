import { join } from 'node:path'
import { expect, test } from 'vitest'
import { circlesAmong, importsOf, read, sourcesBelow } from './sources.ts'

const src = 'packages/gallery/src/'
const files = sourcesBelow(src)

/** Files that the page loads on demand, and the modules that only they may import. */
const onDemand: Readonly<Record<string, RegExp>> = {
  'packages/gallery/src/session/issuer-sign-in.ts': /^oauth4webapi$/,
  'packages/gallery/src/tokens/tokens-view.tsx': /^$/,
  'packages/gallery/src/uploads/uploader/uploader.ts': /^$/,
  'packages/gallery/src/uploads/uploader/resumable.ts': /^tus-js-client$/,
  'packages/gallery/src/service/parse-camera-data.ts': /^exifreader$/,
  'packages/gallery/src/viewer/photo-swipe.tsx': /^photoswipe/,
  'packages/gallery/src/zip/download-zip.ts': /^client-zip$/,
}
const library = /^(@mediabucket\/client|preact(\/hooks)?|@preact\/signals|thumbhash)$/

test('the gallery imports the client but not the server, and only the allowed libraries', () => {
  const strangers = files.flatMap((path) => {
    const { own, foreign } = importsOf(path)
    return [
      ...own.filter((target) => !target.startsWith(src)),
      ...foreign.filter((name) => !library.test(name) && !onDemand[path]?.test(name)),
    ].map((target) => `${path} → ${target}`)
  })
  expect(strangers).toEqual([])
})

test('uploader and viewer are not part of the first view: all imports of them are dynamic', () => {
  const early = files.flatMap((path) =>
    [...read(path).matchAll(/^import (?!type)[^;]*?from '(\.[^']+)'/gms)]
      .map(([, target]) => join(path, '..', target ?? ''))
      .filter((target) => target in onDemand)
      .map((target) => `${path} → ${target}`),
  )
  expect(early).toEqual([])
})

test('no import cycle in the gallery, including type imports', () => {
  expect(circlesAmong(files)).toEqual([])
})

test('G7 no user input is inserted as markup', () => {
  const markup = /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write/
  expect(files.filter((path) => markup.test(read(path)))).toEqual([])
})

test('the texts of the gallery are in one file', () => {
  const spoken = files
    .filter((path) => path.endsWith('.tsx'))
    .flatMap(
      (path) => read(path).match(/(?<=>|aria-label="|title="|placeholder=")[A-Z][a-z]+[ .…][^<>{}"]*/g) ?? [],
    )
  expect(spoken).toEqual([])
})
