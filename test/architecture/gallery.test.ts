import { join } from 'node:path'
import { expect, test } from 'vitest'
import { circlesAmong, importsOf, read, sourcesBelow } from './sources.ts'

const src = 'packages/gallery/src/'
const files = sourcesBelow(src)

/** Files that the page loads on demand, and the modules that only they may import. */
const onDemand: Readonly<Record<string, RegExp>> = {
  'packages/gallery/src/session/issuer-sign-in.ts': /^oauth4webapi$/,
  'packages/gallery/src/service-pages.tsx': /^$/,
  'packages/gallery/src/tokens/tokens-view.tsx': /^$/,
  'packages/gallery/src/webhooks/webhooks-view.tsx': /^$/,
  'packages/gallery/src/viewer/details.tsx': /^$/,
  'packages/gallery/src/timeline/label-menu.tsx': /^$/,
  'packages/gallery/src/selection/label-dialog.tsx': /^$/,
  'packages/gallery/src/selection/location-question.tsx': /^$/,
  'packages/gallery/src/uploads/tray.tsx': /^$/,
  'packages/gallery/src/uploads/uploader/uploader.ts': /^$/,
  'packages/gallery/src/service/parse-camera-data.ts': /^exifreader$/,
  'packages/gallery/src/viewer/photo-swipe.tsx': /^photoswipe/,
  'packages/gallery/src/selection/download-zip.ts': /^client-zip$/,
}
/** Modules that only these files import. */
const alsoAllowed: Readonly<Record<string, RegExp>> = {
  'packages/gallery/src/tokens/qr-code.tsx': /^uqr$/,
  'packages/gallery/src/uploads/use-file-drop.ts': /^@mediabucket\/client\/dom$/,
}
const library = /^(@mediabucket\/client(\/rules)?|preact(\/hooks)?|@preact\/signals|thumbhash)$/

test('the gallery imports the client but not the server, and only the allowed libraries', () => {
  const strangers = files.flatMap((path) => {
    const { own, foreign } = importsOf(path)
    return [
      ...own.filter((target) => !target.startsWith(src)),
      ...foreign.filter((name) => !library.test(name) && !(onDemand[path] ?? alsoAllowed[path])?.test(name)),
    ].map((target) => `${path} → ${target}`)
  })
  expect(strangers).toEqual([])
})

test('all requests of the gallery are sent by the client, except those for thumbnails and for the sign-in', () => {
  expect(files.filter((path) => /[^.\w]fetch\(|XMLHttpRequest|sendBeacon/.test(read(path)))).toEqual([
    `${src}service/sign-in-info.ts`,
    `${src}service/thumbnail.ts`,
  ])
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

/**
 * Which folders and files beside them each may import from; a folder may always import from itself. `stores` are the files that
 * `gallery-context.ts` names the types of.
 */
const folderImports: Readonly<Record<string, readonly string[]>> = {
  strings: [],
  'strings.ts': ['strings'],
  'copy-text.ts': [],
  'restrict-scripts.ts': [],
  'router.ts': [],
  'format.ts': ['strings.ts', 'strings'],
  'limit-texts.ts': ['format.ts', 'strings.ts'],
  components: ['copy-text.ts', 'format.ts', 'service', 'strings.ts'],
  service: ['strings.ts'],
  'preferences.tsx': ['components', 'service', 'strings.ts'],
  session: ['components', 'preferences.tsx', 'service', 'strings.ts'],
  shell: ['components', 'format.ts', 'preferences.tsx', 'router.ts', 'strings.ts', 'strings'],
  tiles: ['components', 'format.ts', 'service', 'strings.ts'],
  timeline: [
    'components',
    'format.ts',
    'preferences.tsx',
    'router.ts',
    'service',
    'strings.ts',
    'strings',
    'tiles',
    'tokens',
  ],
  trash: ['components', 'format.ts', 'router.ts', 'service', 'shell', 'strings.ts', 'tiles'],
  labels: ['components', 'strings.ts'],
  tokens: ['components', 'copy-text.ts', 'format.ts', 'labels', 'limit-texts.ts', 'service', 'strings.ts'],
  webhooks: ['components', 'format.ts', 'service', 'strings.ts'],
  buckets: [
    'components',
    'format.ts',
    'preferences.tsx',
    'service',
    'shell',
    'strings',
    'strings.ts',
    'tokens',
    'webhooks',
  ],
  selection: [
    'components',
    'copy-text.ts',
    'format.ts',
    'labels',
    'router.ts',
    'service',
    'shell',
    'strings.ts',
    'strings',
    'timeline',
    'trash',
  ],
  uploads: [
    'components',
    'format.ts',
    'limit-texts.ts',
    'selection',
    'service',
    'session',
    'strings.ts',
    'strings',
  ],
  'upload-page': [
    'components',
    'format.ts',
    'limit-texts.ts',
    'preferences.tsx',
    'restrict-scripts.ts',
    'service',
    'strings.ts',
    'strings',
    'uploads',
  ],
  viewer: [
    'components',
    'format.ts',
    'labels',
    'selection',
    'service',
    'shell',
    'strings.ts',
    'strings',
    'tiles',
    'timeline',
  ],
}

/** What people see of a folder, and the hooks of that. The other files hold state, and know nothing of the page that shows it. */
const isView = (path: string) => /\.tsx$|\/use-[^/]+$/.test(path)
/** The files that compose the page. */
const composing = [
  ...['main.tsx', 'app.tsx', 'gallery-context.ts', 'open-gallery.ts', 'open-service.ts', 'service-pages.tsx'],
  'use-code.ts',
].map((name) => `${src}${name}`)
const folderOf = (path: string) => path.slice(src.length).split('/')[0] ?? ''

test('imports between the folders of the gallery point one way', () => {
  const features = files.filter((path) => !composing.includes(path))
  expect(features.map(folderOf).filter((folder) => !(folder in folderImports))).toEqual([])
  const wrong = features.flatMap((path) =>
    importsOf(path)
      .own.filter((target) => {
        const [from, to] = [folderOf(path), folderOf(target)]
        return (
          from !== to && to !== 'styles' && !composing.includes(target) && !folderImports[from]?.includes(to)
        )
      })
      .map((target) => `${path} → ${target}`),
  )
  expect(wrong).toEqual([])
})

test('only views use the context of the page, and only the page itself composes it', () => {
  const importersOf = (name: string) => files.filter((path) => importsOf(path).own.includes(`${src}${name}`))
  expect(
    importersOf('gallery-context.ts').filter((path) => !isView(path) && !composing.includes(path)),
  ).toEqual([])
  expect(importersOf('open-gallery.ts')).toEqual([`${src}app.tsx`])
  expect(importersOf('open-service.ts')).toEqual([`${src}service-pages.tsx`])
  expect(importersOf('app.tsx')).toEqual([`${src}main.tsx`])
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
