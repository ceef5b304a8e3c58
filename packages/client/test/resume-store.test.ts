import { afterEach, expect, test, vi } from 'vitest'
import { localStorageResume } from '../src/index.ts'

/** An implementation of the Storage of browsers. */
function storage(entries: Record<string, string> = {}) {
  const items = new Map(Object.entries(entries))
  return {
    items,
    get length() {
      return items.size
    },
    key: (index: number) => [...items.keys()][index] ?? null,
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  }
}

afterEach(() => {
  vi.unstubAllGlobals()
})

test('localStorage stores, returns and removes upload ids', async () => {
  const own = storage({ other: 'of the page' })
  vi.stubGlobal('localStorage', own)
  const store = localStorageResume()
  await store.set('a b', 'up1')
  await store.set('a c', 'up2')
  expect([await store.get('a b'), await store.get('a c'), await store.get('a')]).toEqual([
    'up1',
    'up2',
    undefined,
  ])
  await store.remove('a b')
  expect(await store.get('a b')).toBeUndefined()
  expect(own.items.get('other')).toBe('of the page')
})

test('entries of 31 days ago or without a date are removed, entries of the page are not', async () => {
  const old = Date.now() - 31 * 24 * 3_600_000
  const own = storage({
    other: 'of the page 1',
    'mediabucket old': `up1 ${old}`,
    'mediabucket undated': 'up2',
    'mediabucket recent': `up3 ${Date.now()}`,
  })
  vi.stubGlobal('localStorage', own)
  await localStorageResume().set('new', 'up4')
  expect([...own.items.keys()]).toEqual(['other', 'mediabucket recent', 'mediabucket new'])
})

test.each<[string, PropertyDescriptor]>([
  ['missing', { value: undefined }],
  [
    'forbidden',
    {
      get() {
        throw new Error('SecurityError')
      },
    },
  ],
  [
    'full',
    {
      value: {
        ...storage(),
        setItem() {
          throw new Error('QuotaExceededError')
        },
      },
    },
  ],
])('if localStorage is %s, nothing is stored and no call fails', async (_name, descriptor) => {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'localStorage')
  Object.defineProperty(globalThis, 'localStorage', { configurable: true, ...descriptor })
  try {
    const store = localStorageResume()
    await store.set('a', 'up1')
    expect(await store.get('a')).toBeUndefined()
    await store.remove('a')
  } finally {
    if (before) Object.defineProperty(globalThis, 'localStorage', before)
    else Reflect.deleteProperty(globalThis, 'localStorage')
  }
})
