import { expect, test } from 'vitest'
import { filesBelow, sourcesBelow } from './sources.ts'
import { unboundMethods } from './unbound-methods.ts'

test('methods of classes are called on their objects: no object is spread, and no method is handed on without its object', () => {
  const sources = ['server', 'cli', 'client', 'strip-metadata'].flatMap((name) =>
    sourcesBelow(`packages/${name}/src`),
  )
  expect(unboundMethods(sources, 'tsconfig.json')).toEqual([])
  expect(unboundMethods(sourcesBelow('packages/gallery/src'), 'packages/gallery/tsconfig.json')).toEqual([])
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
