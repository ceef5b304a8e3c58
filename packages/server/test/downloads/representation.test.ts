import { expect, onTestFinished, test, vi } from 'vitest'
import { service } from '../../src/core/token-rules.ts'
import { builtInSizes } from '../../src/core/variant-sizes.ts'
import { createVariantList } from '../../src/core/variants.ts'
import { describeRepresentation } from '../../src/downloads/representation.ts'
import type { Item } from '../../src/storage/catalog/records.ts'
import { storedItem } from '../storage/catalog/samples.ts'

const now = 1_900_000_000_000
const describeIt = describeRepresentation({
  maxAge: 86_400_000,
  vary: { inline: '', attachment: 'Sec-Fetch-Dest', variant: 'Accept' },
})

const itemUntil = (expiresAt: number | null): Item => storedItem({ expiresAt })
const token = { by: 'token', actor: service } as const
const link = { by: 'link', keyId: 'key', expires: now / 1000 + 600 } as const
const publicForever = 'public, max-age=86400, immutable'

test.each([
  ['a public item', null, null, publicForever, null],
  ['a public item that expires', 5_000, null, 'public, no-cache', 5_000],
  ['a token', null, token, 'private, no-cache', 60_000],
  ['a token, and an item that expires before', 5_000, token, 'private, no-cache', 5_000],
  ['a token, and an item that expires later', 90_000, token, 'private, no-cache', 60_000],
  ['a link', null, link, 'private, max-age=600, immutable', 600_000],
  ['a link, and an item that expires before', 5_500, link, 'private, max-age=5, immutable', 5_000],
  ['a link, and an item that has just expired', -1, link, 'private, max-age=0, immutable', 0],
] as const)(
  'E2, H4 %s: caches, proxies and the store keep the bytes no longer than they may',
  (_, left, access, cacheControl, validFor) => {
    vi.useFakeTimers({ toFake: ['Date'], now })
    onTestFinished(() => void vi.useRealTimers())
    const item = itemUntil(left === null ? null : now + left)
    expect(describeIt(item, null, false, access)).toMatchObject({ cacheControl, validFor })
  },
)

test.each([
  ['a public bucket', null, 'public, max-age=86400'],
  ['a link', link, 'private, max-age=600'],
  ['a token', token, 'private, no-cache'],
] as const)(
  'V4 a variant of %s is not immutable: a focus and a size change it',
  (_, access, cacheControl) => {
    vi.useFakeTimers({ toFake: ['Date'], now })
    onTestFinished(() => void vi.useRealTimers())
    const variant = createVariantList(builtInSizes).parse({ name: 'thumb' }, 'webp')
    expect(describeIt(itemUntil(null), variant, false, access)).toMatchObject({ cacheControl })
  },
)
