import { expect, test } from 'vitest'
import { bucketNameRule, isBucketName } from './bucket-name.ts'

test.each(['a', '0', 'default', 'my-photos-2025', 'a-', 'a'.repeat(63)])('%j is a bucket name', (name) => {
  expect(isBucketName(name)).toBe(true)
})

test.each(['', '-a', 'A', 'my_photos', 'my photos', 'a.b', 'a/b', '..', 'é', 'a\n', '\na', 'a'.repeat(64)])(
  '%j is not a bucket name',
  (name) => {
    expect(isBucketName(name)).toBe(false)
  },
)

test('the rule describes the accepted names', () => {
  expect(bucketNameRule).toMatch(/1 to 63 lower-case letters, digits and hyphens/)
})
