import { expect, test } from 'vitest'
import { circlesAmong, filesBelow, importsOf, read, sourcesBelow } from './sources.ts'

const src = 'packages/client/src/'
const files = sourcesBelow(src)

/** The files of each layer. A file may import those of its own layer and of the layers before it. */
const layers: readonly (readonly string[])[] = [
  [
    'errors.ts',
    'label-rules.ts',
    'list-rules.ts',
    'name-rules.ts',
    'shape.ts',
    'store.ts',
    'text-rules.ts',
    'thumb-hash.ts',
    'urls.ts',
  ],
  [
    'attempt-timer.ts',
    'client-options.ts',
    'json.ts',
    'responses.ts',
    'retry.ts',
    'send.ts',
    'transport.ts',
    'upload-content.ts',
  ],
  [
    'audit-log.ts',
    'bucket.ts',
    'buckets.ts',
    'bytes.ts',
    'changes.ts',
    'item-list.ts',
    'keys.ts',
    'labels.ts',
    'links.ts',
    'media.ts',
    'page.ts',
    'pictures.ts',
    'resumable-upload.ts',
    'resume-store.ts',
    'tokens.ts',
    'trash.ts',
    'tus.ts',
    'upload.ts',
    'url-upload.ts',
    'usage.ts',
    'webhooks.ts',
  ],
  ['client.ts', 'create-client.ts', 'service.ts'],
  // For apps with a user interface, on the methods of the client.
  ['item-store.ts', 'upload-queue.ts'],
  ['dom.ts', 'index.ts', 'rules.ts'],
]
const layerOf = (path: string) => layers.findIndex((layer) => layer.includes(path.slice(src.length)))

test('every file of the client is in a known layer', () => {
  expect(files.filter((path) => layerOf(path) < 0)).toEqual([])
})

test('imports of the client point one way, from its interface down to requests, and it has no dependency', () => {
  const wrong = files.flatMap((path) => {
    const { own, foreign } = importsOf(path)
    return [
      ...own.filter((target) => layerOf(target) < 0 || layerOf(target) > layerOf(path)),
      ...foreign,
    ].map((target) => `${path} → ${target}`)
  })
  expect(wrong).toEqual([])
})

test('packages for frameworks hold no state of their own: they import the framework, the client and their own files only', () => {
  const frameworks = { react: /^react$/, vue: /^vue$/ }
  const wrong = Object.entries(frameworks).flatMap(([name, framework]) => {
    const folder = `packages/${name}/src/`
    const own = sourcesBelow(folder)
    expect(own.length).toBeGreaterThan(3)
    expect(circlesAmong(own)).toEqual([])
    return own.flatMap((path) => {
      const { own: targets, foreign } = importsOf(path)
      return [
        ...targets.filter((target) => !target.startsWith(folder)),
        ...foreign.filter((one) => !/^@mediabucket\/client(\/dom)?$/.test(one) && !framework.test(one)),
      ].map((target) => `${path} → ${target}`)
    })
  })
  expect(wrong).toEqual([])
})

test('no import cycle in the client, including type imports', () => {
  expect(circlesAmong(files)).toEqual([])
})

test('one file of the client adds the token, and one calls fetch and XMLHttpRequest', () => {
  const having = (text: RegExp) => files.filter((path) => text.test(read(path)))
  expect(having(/Bearer \$\{/)).toEqual([`${src}send.ts`])
  expect(having(/[^.\w]fetch\(|new Xhr\(/)).toEqual([`${src}transport.ts`])
})

test('P6 no program takes values out of the words of a problem', () => {
  const programs = ['packages/client/src', 'packages/cli/src', 'packages/gallery/src', 'demo'].flatMap(
    filesBelow,
  )
  const parsed = programs.filter((path) =>
    read(path)
      .split('\n')
      .some((line) =>
        /\b(?:exec|test|match|matchAll|includes|startsWith|split)\([^)]*\bdetail\b|\bdetail\b[^;]*\.(?:match|matchAll|includes|startsWith|split|replace)\(/.test(
          line,
        ),
      ),
  )
  expect(programs.length).toBeGreaterThan(100)
  expect(parsed).toEqual([])
})
