import { expect, test } from 'vitest'
import { filesBelow, sourcesBelow } from './sources.ts'
import { unboundMethods } from './unbound-methods.ts'

test('methods of classes are called on their objects: no object is spread, and no method is handed on without its object', () => {
  // Its types are those of browsers, with which packages/react is compiled.
  const ofBrowsers = 'packages/client/src/dom.ts'
  const sources = ['server', 'cli', 'client', 'strip-metadata']
    .flatMap((name) => sourcesBelow(`packages/${name}/src`))
    .filter((path) => path !== ofBrowsers)
  expect(unboundMethods(sources, 'tsconfig.json')).toEqual([])
  expect(unboundMethods(sourcesBelow('packages/gallery/src'), 'packages/gallery/tsconfig.json')).toEqual([])
  const ofReact = [...sourcesBelow('packages/react/src'), ofBrowsers]
  expect(unboundMethods(ofReact, 'packages/react/tsconfig.json')).toEqual([])
  expect(unboundMethods(sourcesBelow('packages/vue/src'), 'packages/vue/tsconfig.json')).toEqual([])
})

test('the check finds methods that are destructured, spread and handed on, behind an interface too', () => {
  const samples = 'test/architecture/samples'
  expect(unboundMethods(filesBelow(samples), 'tsconfig.json')).toEqual([
    `${samples}/unbound-methods.ts: next`,
    `${samples}/unbound-methods.ts: ...counter`,
    `${samples}/unbound-methods.ts: counter.next`,
    `${samples}/unbound-methods.ts: pile.push`,
  ])
})
