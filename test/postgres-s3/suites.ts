import { afterAll, beforeAll, describe, TestRunner } from 'vitest'
import { usePostgres, useS3 } from '../harness/database.ts'

/**
 * Tests of these suites that the whole run leaves out here, and why they cannot differ from those on SQLite and the disk. `title` is a
 * part of the title of a test or of a group.
 */
const leftOut: readonly { readonly suite: string; readonly title: string; readonly reason: string }[] = [
  {
    suite: 'listing',
    title: 'L7 every page has a link',
    reason: 'the links are computed from the total, which the other tests read',
  },
  {
    suite: 'listing',
    title: 'a bucket of 25 items',
    reason: 'parameters and headers; the contract of the catalog has the pages',
  },
  { suite: 'listing-under-change', title: '{"MEDIABUCKET_LINKS"', reason: 'a form of the page object' },
  {
    suite: 'listing-under-change',
    title: '{"MEDIABUCKET_CACHE":"0"}',
    reason: 'a form of the page object; another one has no cache either',
  },
  {
    suite: 'items',
    title: 'K5 while others upload and delete',
    reason: 'the contract of the catalog has this test with two processes',
  },
  {
    suite: 'changes',
    title: 'FE7 more changes than one read has',
    reason: 'the contract of the catalog reads the feed in parts',
  },
  { suite: 'changes', title: 'FE8 a token has a limited number', reason: 'a count of the process' },
  { suite: 'changes', title: 'FE3 parameters are checked', reason: 'parameters' },
  { suite: 'changes', title: 'FE5 a cursor of another bucket', reason: 'parameters' },
  { suite: 'upload-form', title: 'U1 ', reason: 'the grammar of forms' },
  { suite: 'upload-form', title: 'U10 a malformed form', reason: 'the grammar of forms' },
  { suite: 'idempotency', title: 'I1 the key', reason: 'the grammar of a header' },
  { suite: 'tus-protocol', title: 'R2 the version', reason: 'headers' },
  {
    suite: 'taken',
    title: 'M9 the time at which',
    reason: 'formats; the other tests read small and large files',
  },
  { suite: 'metadata', title: 'X2 files that decoders read', reason: 'bytes before they are stored' },
  { suite: 'metadata', title: 'X2 a TIFF picture', reason: 'bytes before they are stored' },
  { suite: 'metadata', title: 'X3 files of other types', reason: 'bytes before they are stored' },
  { suite: 'variants', title: 'V1 ', reason: 'pixels; the source of the bytes is tested by V3 and V8' },
  { suite: 'variants', title: 'V2 ', reason: 'pixels' },
]

/**
 * Runs suites of test/http, which by default use SQLite and the disk, on servers with PostgreSQL and an S3 store.
 * `npm run test:postgres-s3` runs all suites on them.
 */
export function describeOnPostgresAndS3(...suites: readonly string[]): void {
  describe.each(suites)('%s on PostgreSQL and S3', async (suite) => {
    let restore: (() => void)[] = []
    beforeAll(() => {
      restore = [usePostgres(), useS3()]
    })
    afterAll(() => {
      for (const undo of restore) undo()
    })
    // The query makes it a module of its own, so that its tests are registered again.
    await import(`${new URL(`../http/${suite}.test.ts`, import.meta.url).pathname}?postgres-s3`)
    leaveOut(suite)
  })
}

/** Removes the tests that `leftOut` names from the current suite. */
function leaveOut(suite: string): void {
  const { tasks } = TestRunner.getCurrentSuite()
  for (const { title } of leftOut.filter((row) => row.suite === suite)) {
    // The title of a group may be a rule only, which ends here with a space as in the title of a test.
    const kept = tasks.filter(({ name }) => !`${name} `.includes(title))
    // Else a renamed test would run here again.
    if (kept.length === tasks.length) throw new Error(`${suite} has no test with this in its title: ${title}`)
    tasks.splice(0, tasks.length, ...kept)
  }
}
